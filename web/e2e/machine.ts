/**
 * A server of a test's own, whose sessions really run: on this machine, in its sandbox, with the environments that `make test` has
 * prepared. The demo's sites are simulated, and nobody should wait an hour there for an idle notebook to be stopped.
 */
import { expect, request, type APIRequestContext, type Browser, type BrowserContextOptions, type Page } from '@playwright/test';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

export const SITE = 'here';
const WHO = { login: 'ada', password: 'ada-and-her-engine-1843' };
const BERTH = process.env.BERTH_BINARY ?? '../target/release/berth';
const CACHE = process.env.BERTH_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'berth');
/** An idle notebook still answers its page, so that a look at less than this is chance. */
const CULL_EVERY_S = 10;

/** A preset for sessions, small enough for two of them on any machine. Its keeper ends it, should nobody else. */
export function preset(title: string, app: string, idle: string, cores_milli = 1_000): object {
  return { title, wishes: [{ task: { cores_milli, memory_mib: 1_024 }, limit: 'PT20M' }], session: { app, idle } };
}

export interface Session {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly url: string;
  readonly said?: string;
  readonly active_at: string;
}

// What begins with BERTH_ would be taken for a setting.
const plain = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('BERTH_')));

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** On the database that the other tests run on, too. */
function database(folder: string): string {
  if (process.env.BERTH_E2E_STORE !== 'postgres') return `sqlite:${join(folder, 'berth.sqlite')}`;
  const server = new URL(process.env.BERTH_TEST_POSTGRES!);
  const name = `berth_e2e_machine_${process.pid}_${Date.now()}`;
  execFileSync('psql', [server.href, '--quiet', '--command', `CREATE DATABASE ${name}`], { stdio: 'inherit' });
  server.pathname = `/${name}`;
  return server.href;
}

export class Machine {
  private serving: ChildProcess | undefined;
  private http: APIRequestContext | undefined;
  private csrf = '';
  /** Where browsers find it. */
  private seenAt: URL;

  private constructor(
    readonly url: string,
    private readonly folder: string,
    private readonly settings: Record<string, string>,
  ) {
    this.seenAt = new URL(url);
  }

  /** With these presets for sessions. */
  static async start(profiles: Record<string, object>): Promise<Machine> {
    const folder = mkdtempSync(join(tmpdir(), 'berth-e2e-machine-'));
    const port = await freePort();
    const url = `http://localhost:${port}`;
    const machine = new Machine(url, folder, {
      ...plain,
      BERTH_LISTEN: `127.0.0.1:${port}`,
      BERTH_PUBLIC_URL: url,
      BERTH_DATA_DIR: folder,
      BERTH_DATABASE: database(folder),
      BERTH_LOG_FILTER: 'warn',
      BERTH_QUEUE_BACKEND: 'local',
      BERTH_MACHINE_SITE: SITE,
      BERTH_PREPARED_ENVIRONMENTS: join(CACHE, 'environments'),
      BERTH_CULL_EVERY_S: String(CULL_EVERY_S),
      BERTH_CULL_WARNING_S: String(CULL_EVERY_S),
    });
    try {
      await machine.furnish(profiles);
    } catch (error) {
      await machine.halt();
      throw error;
    }
    return machine;
  }

  private async furnish(profiles: Record<string, object>): Promise<void> {
    const stdio: ['pipe', 'ignore', 'inherit'] = ['pipe', 'ignore', 'inherit'];
    execFileSync(BERTH, ['admin', 'create', WHO.login, '--password-stdin'], { input: `${WHO.password}\n`, env: this.settings, stdio });
    await this.serve();
    await this.signIn();
    await this.call('POST', '/sites', { name: SITE, title: 'Here', time_zone: 'Europe/Rome' });
    await this.call('PUT', `/sites/${SITE}/members/${WHO.login}`, { role: 'site_admin' });
    // A machine moves into its site when the server starts, or half a minute later.
    await this.halt();
    await this.serve();
    const { settings } = await this.call<{ settings: object }>('GET', `/sites/${SITE}/queue/settings`);
    await this.call('PUT', `/sites/${SITE}/queue/settings`, { ...settings, profiles });
  }

  private async serve(): Promise<void> {
    this.serving = spawn(BERTH, ['serve'], { stdio: 'inherit', env: this.settings });
    const isReady = async () => (await fetch(`${this.url}/readyz`).catch(() => undefined))?.ok ?? false;
    await expect.poll(isReady, { timeout: 60_000 }).toBe(true);
  }

  private async halt(): Promise<void> {
    if (this.serving?.exitCode !== null) return;
    this.serving.kill('SIGTERM');
    await once(this.serving, 'exit');
  }

  private async signIn(): Promise<void> {
    this.http = await request.newContext({ baseURL: this.url });
    const answer = await this.http.post('/api/v1/sign-in', { data: WHO });
    expect(answer.ok(), await answer.text()).toBe(true);
    this.csrf = ((await answer.json()) as { csrf_token: string }).csrf_token;
  }

  async call<T>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, data?: unknown): Promise<T> {
    const headers = { 'x-csrf-token': this.csrf, 'if-match': '*' };
    const answer = await this.http!.fetch(`/api/v1${path}`, { method, headers, ...(data === undefined ? {} : { data }) });
    expect(answer.ok(), `${method} ${path}: ${await answer.text()}`).toBe(true);
    return (answer.status() === 204 ? undefined : await answer.json()) as T;
  }

  session(id: string): Promise<Session> {
    return this.call('GET', `/sites/${SITE}/sessions/${id}`);
  }

  /** Gives it another name, by which only browsers find it that are told where that leads. What runs is stopped before. */
  async moveTo(host: string): Promise<void> {
    await this.stopSessions();
    await this.halt();
    this.seenAt.hostname = host;
    this.settings['BERTH_PUBLIC_URL'] = this.seenAt.origin;
    // What is asked beside a browser goes on by the old name.
    this.settings['BERTH_ALLOWED_HOSTS'] = 'localhost';
    // Such a name gives sessions no origins of their own, and the server asks whether that is meant.
    this.settings['BERTH_UNSAFE_SHARED_ORIGIN'] = 'true';
    await this.serve();
  }

  /** A page of a browser in which Ada is signed in. */
  async page(browser: Browser, options: BrowserContextOptions = {}): Promise<Page> {
    const { cookies } = await this.http!.storageState();
    const storageState = { origins: [], cookies: cookies.map((cookie) => ({ ...cookie, domain: this.seenAt.hostname })) };
    const context = await browser.newContext({ baseURL: this.seenAt.origin, locale: 'en-GB', timezoneId: 'Europe/Rome', viewport: { width: 1360, height: 850 }, storageState, ...options });
    return context.newPage();
  }

  /** A file in the home of the one person who works here; nothing, where there is none yet. */
  written(name: string): string | undefined {
    const homes = join(this.folder, 'work', 'homes');
    const files = readdirSync(homes).map((home) => join(homes, home, name));
    const there = files.find((file) => existsSync(file));
    return there && readFileSync(there, 'utf8');
  }

  private async stopSessions(): Promise<void> {
    const sessions = async () => (await this.call<{ items: Session[] }>('GET', `/sites/${SITE}/sessions`)).items;
    const isOver = ({ state }: Session) => state === 'stopped' || state === 'failed';
    for (const one of (await sessions()).filter((one) => !isOver(one) && one.state !== 'stopping')) {
      await this.call('POST', `/sites/${SITE}/sessions/${one.id}/stop`, {});
    }
    await expect.poll(async () => (await sessions()).every(isOver), { timeout: 60_000 }).toBe(true);
  }

  /** What runs outlives a server, and is therefore stopped first. */
  async stop(): Promise<void> {
    try {
      await this.stopSessions();
    } finally {
      await this.http?.dispose();
      await this.halt();
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
