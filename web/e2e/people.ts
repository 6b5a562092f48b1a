/** The demo's people, signed in once each: a password costs the server half a second, on purpose. */
import { expect, request, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from '@playwright/test';

export type Who = 'priya' | 'marco' | 'ines' | 'olga' | 'chiara';
const PASSWORD = 'demo-berth-2026';

type State = Awaited<ReturnType<BrowserContext['storageState']>>;
const states = new Map<Who, { state: State; csrf: string }>();

export async function signedIn(who: Who, baseURL: string): Promise<{ state: State; csrf: string }> {
  const known = states.get(who);
  if (known) return known;
  const http = await request.newContext({ baseURL });
  const answer = await http.post('/api/v1/sign-in', { data: { login: who, password: PASSWORD } });
  expect(answer.ok(), await answer.text()).toBe(true);
  const { csrf_token: csrf } = (await answer.json()) as { csrf_token: string };
  const state = await http.storageState();
  await http.dispose();
  states.set(who, { state, csrf });
  return { state, csrf };
}

/** A page of somebody's own browser. */
export async function pageOf(browser: Browser, who: Who | null, baseURL: string, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({
    baseURL,
    locale: 'en-GB',
    timezoneId: 'Europe/Rome',
    viewport: { width: 1360, height: 850 },
    ...(who ? { storageState: (await signedIn(who, baseURL)).state } : {}),
    ...options,
  });
  return context.newPage();
}

/** The API, for setting a scene. */
export async function call<T>(who: Who, baseURL: string, method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, data?: unknown): Promise<T> {
  const { state, csrf } = await signedIn(who, baseURL);
  const http = await request.newContext({ baseURL, storageState: state });
  const headers = { 'x-csrf-token': csrf, 'if-match': '*' };
  const answer = await http.fetch(`/api/v1${path}`, { method, headers, ...(data === undefined ? {} : { data }) });
  expect(answer.ok(), `${method} ${path}: ${await answer.text()}`).toBe(true);
  const body = answer.status() === 204 ? undefined : ((await answer.json()) as T);
  await http.dispose();
  return body as T;
}

/** Fails a test on anything that a person would find in the console. */
export function watchConsole(page: Page): string[] {
  const found: string[] = [];
  page.on('console', (message) => {
    // A browser notes every refused request; whether a refusal is a defect is for the page to say.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) found.push(message.text());
  });
  page.on('pageerror', (error) => found.push(error.message));
  return found;
}
