/**
 * The server under test: the demo as it comes, on SQLite; or its world moved to PostgreSQL and served from there, with
 * BERTH_E2E_STORE=postgres and a server in BERTH_TEST_POSTGRES (`scripts/with-postgres`).
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [berth, listen] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'berth-e2e-'));
const demo = (address) => ['demo', '--listen', address, '--data-dir', folder];

// What begins with BERTH_ would be taken for a setting.
const plain = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('BERTH_')));

function start(args, env = {}) {
  const child = spawn(berth, args, { stdio: 'inherit', env: { ...plain, ...env } });
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => child.kill(signal));
  return child;
}

async function isReady(address) {
  for (;;) {
    const answer = await fetch(`http://${address}/readyz`).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((wake) => setTimeout(wake, 100));
  }
}

async function moved() {
  // Elsewhere: whoever waits for the server under test must not take this one for it.
  const [host, port] = listen.split(':');
  const elsewhere = `${host}:${Number(port) + 1}`;
  const making = start(demo(elsewhere));
  await Promise.race([isReady(elsewhere), once(making, 'exit')]);
  making.kill('SIGTERM');
  await once(making, 'exit');
  const server = new URL(process.env.BERTH_TEST_POSTGRES);
  const name = `berth_e2e_${process.pid}`;
  execFileSync('psql', [server.href, '--quiet', '--command', `CREATE DATABASE ${name}`], { stdio: 'inherit' });
  server.pathname = `/${name}`;
  const settings = { BERTH_DATA_DIR: folder, BERTH_SECRET_KEY_FILE: join(folder, 'demo.key'), BERTH_LOG_FILTER: 'warn' };
  const from = { ...settings, BERTH_DATABASE: `sqlite:${join(folder, 'demo.sqlite')}` };
  execFileSync(berth, ['db', 'move', '--to', server.href], { stdio: 'inherit', env: { ...plain, ...from } });
  // The demo's queue lives by itself; a server has to be told what runs its work.
  return start(['serve', '--listen', listen], { ...settings, BERTH_DATABASE: server.href, BERTH_QUEUE_BACKEND: 'simulated' });
}

const serving = process.env.BERTH_E2E_STORE === 'postgres' ? await moved() : start(demo(listen));
const [code] = await once(serving, 'exit');
process.exit(code ?? 0);
