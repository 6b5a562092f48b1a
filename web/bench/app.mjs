/** The app as the server serves it: how much script the calendar waits for, and how soon one browser sees what another does. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const LISTEN = '127.0.0.1:4198';
const SERVER = `http://${LISTEN}`;
const CHANGES = 40;
const DAY = 24 * 3_600_000;

async function served(binary) {
  const server = spawn(process.execPath, [new URL('../e2e/serve.mjs', import.meta.url).pathname, binary, LISTEN], { stdio: 'ignore' });
  for (;;) {
    const answer = await fetch(`${SERVER}/readyz`).catch(() => undefined);
    if (answer?.ok) return server;
    if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode} before it was ready`);
    await new Promise((wake) => setTimeout(wake, 100));
  }
}

async function signedIn(browser, login) {
  const context = await browser.newContext({ baseURL: SERVER, viewport: { width: 1360, height: 850 } });
  const answer = await context.request.post('/api/v1/sign-in', { data: { login, password: 'demo-berth-2026' } });
  if (!answer.ok()) throw new Error(`${login} cannot sign in: ${await answer.text()}`);
  return { page: await context.newPage(), csrf: (await answer.json()).csrf_token };
}

/** Kilobytes of script, as they came over the line, until the calendar of a site shows its bookings. */
async function scriptOf(page, address) {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  const scripts = new Set();
  let bytes = 0;
  session.on('Network.responseReceived', ({ requestId, type }) => type === 'Script' && scripts.add(requestId));
  session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    if (scripts.has(requestId)) bytes += encodedDataLength;
  });
  const listening = page.waitForResponse('**/events/stream');
  await page.goto(address);
  await page.waitForSelector('[data-row], [role=row]');
  await listening;
  if (bytes === 0) throw new Error('no script came over the line');
  return bytes / 1000;
}

/** Milliseconds from a click's request in one browser to the change on the other's screen, the 95th of a hundred. */
async function liveOf(watching, acting, day) {
  const seen = [];
  const from = new Date(day + 9 * 3_600_000).toISOString();
  const to = new Date(day + 15 * 3_600_000).toISOString();
  const send = (method, path, body) =>
    acting.page.evaluate(
      async ({ method, path, body, csrf }) => {
        const headers = { 'content-type': 'application/json', 'x-csrf-token': csrf, 'if-match': '*' };
        const sent = Date.now();
        const answer = await fetch(`/api/v1/sites/torino/reservations${path}`, { method, headers, body: JSON.stringify(body) });
        if (!answer.ok) throw new Error(await answer.text());
        return { sent, reservation: await answer.json() };
      },
      { method, path, body, csrf: acting.csrf },
    );
  const made = await send('POST', '', { title: 'Live', start: from, end: to, resources: [{ resource: 'bench-gpu' }] });
  for (let change = 0; change < CHANGES; change++) {
    const title = `Live ${change}`;
    const shown = watching.page.evaluate(
      (wanted) =>
        new Promise((done) => {
          const look = () => {
            if (![...document.querySelectorAll('[data-item]')].some((item) => item.textContent.includes(wanted))) return;
            observer.disconnect();
            requestAnimationFrame(() => done(Date.now()));
          };
          const observer = new MutationObserver(look);
          observer.observe(document.body, { subtree: true, childList: true, characterData: true });
        }),
      title,
    );
    const { sent } = await send('PATCH', `/${made.reservation.id}`, { title });
    seen.push((await shown) - sent);
  }
  return seen.toSorted((a, b) => a - b)[Math.ceil(CHANGES * 0.95) - 1];
}

export async function measureApp(browser, binary) {
  const server = await served(binary);
  try {
    const day = Math.floor(Date.now() / DAY) * DAY + 20 * DAY;
    const watching = await signedIn(browser, 'priya');
    const acting = await signedIn(browser, 'marco');
    const kilobytes = await scriptOf(watching.page, `/sites/torino?q=bench-gpu&from=${new Date(day).toISOString()}&to=${new Date(day + DAY).toISOString()}`);
    await acting.page.goto('/sites/torino');
    return { 'web.calendar.script_kb': kilobytes, 'web.live_ms': await liveOf(watching, acting, day) };
  } finally {
    server.kill('SIGTERM');
    await once(server, 'exit');
  }
}
