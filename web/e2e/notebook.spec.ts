/**
 * Sessions that really run, from the press of a button to what is typed in them: JupyterLab and VS Code, through the proxy, with
 * their WebSockets; and what becomes of one that nobody works in.
 */
import { expect, test, type Page } from '@playwright/test';
import { expectAccessible } from './axe';
import { Machine, preset, SITE, type Session } from './machine';
import { watchConsole } from './people';

/** Real programs take their time to begin, and more of it on a machine that has other things to do. */
const BEGINS = { timeout: 90_000 };
/** Some looks at what is idle, and the grace that it has to end. */
const IS_STOPPED = { timeout: 180_000 };

const PRESETS = {
  notebook: preset('A notebook', 'jupyterlab', 'PT1H'),
  'short-notebook': preset('A notebook that is soon stopped', 'jupyterlab', 'PT20S'),
  editor: preset('An editor', 'vscode', 'PT1H'),
};

let machine: Machine;
test.beforeAll(async () => {
  test.setTimeout(180_000);
  machine = await Machine.start(PRESETS);
});
test.afterAll(() => machine?.stop());
test.describe.configure({ timeout: 420_000 });

const cell = (page: Page, at: number) => page.locator('.jp-Notebook .jp-CodeCell').nth(at);
const address = (session: Session) => new URL(session.url).origin;

/** Presses the button, and follows the page to where the app is. */
async function started(page: Page, title: string): Promise<Session> {
  await page.goto(`/sites/${SITE}/sessions`);
  await page.getByRole('button', { name: `Start ${title}`, exact: true }).click();
  await expect(page).toHaveURL(/\/sessions\/ses_\w+\?open=1$/);
  const session = await machine.session(/ses_\w+/.exec(page.url())![0]);
  await expect(page.getByRole('list', { name: 'How far it is' })).toBeVisible();
  await page.waitForURL((url) => url.origin === address(session), BEGINS);
  return session;
}

/** A new notebook, whatever was open when its owner last worked, once its kernel can be given something to do. */
async function newNotebook(page: Page): Promise<void> {
  await page.goto(`${new URL(page.url()).origin}/lab?reset`);
  const kernels = page.locator('.jp-LauncherCard[data-category="Notebook"]');
  await expect(kernels.filter({ hasText: 'Python 3 (ipykernel)' })).toBeVisible(BEGINS);
  // By the name of its environment it would be there twice.
  await expect(kernels.filter({ hasText: 'jupyterlab' })).toHaveCount(0);
  await kernels.filter({ hasText: 'Python 3 (ipykernel)' }).click();
  await kernelIsIdle(page);
}

async function kernelIsIdle(page: Page): Promise<void> {
  await expect(page.getByText('Python 3 (ipykernel) | Idle')).toBeVisible(BEGINS);
}

async function run(page: Page, at: number, code: string): Promise<void> {
  await cell(page, at).locator('.cm-content').click();
  await page.keyboard.insertText(code);
  await page.keyboard.press('Shift+Enter');
}

test('a press starts JupyterLab, its page opens by itself, and a cell computes', async ({ browser }) => {
  const page = await machine.page(browser);
  const errors = watchConsole(page);
  const session = await started(page, 'A notebook');
  expect((await machine.session(session.id)).state).toBe('ready');
  await newNotebook(page);
  await run(page, 0, '6 * 7');
  await expect(cell(page, 0).locator('.jp-OutputArea-output')).toHaveText('42');
  // Whoever looks into the kernel finds neither Berth's files nor anybody else's home.
  await run(page, 1, "import os; print(sorted(os.listdir('/home')), os.path.exists(os.path.expanduser('~root/.cache')))");
  await expect(cell(page, 1).locator('.jp-OutputArea-output')).toHaveText("['ada'] False");
  await page.keyboard.press('Control+s');
  await page.getByRole('button', { name: 'Rename and Save' }).click();
  await expect(page.locator('.lm-TabBar-tab.jp-mod-dirty')).toHaveCount(0);

  await page.reload();
  await kernelIsIdle(page);
  await expect(cell(page, 0).locator('.jp-OutputArea-output')).toHaveText('42');
  // The same kernel: what it knew, it knows.
  await run(page, 2, 'os.getcwd()');
  await expect(cell(page, 2).locator('.jp-OutputArea-output')).toHaveText("'/home/ada'");
  expect(errors).toEqual([]);

  // Who is not signed in is sent to sign in, and sees nothing of it.
  const stranger = await browser.newPage();
  await stranger.goto(`${session.url}lab`);
  await expect(stranger).toHaveURL(new RegExp(`^${machine.url}/sign-in\\?`));
  await stranger.close();

  // Its page in Berth ends it, and with it what is open.
  const berth = await page.context().newPage();
  await berth.goto(`/sites/${SITE}/sessions/${session.id}`);
  await expect(berth.getByText('It is ready.')).toBeVisible();
  await expectAccessible(berth, 'a session that really runs');
  await berth.getByRole('button', { name: `Stop ${session.name}` }).click();
  await berth.getByRole('dialog').getByRole('button', { name: 'Stop', exact: true }).click();
  await expect(berth.getByText('It is stopped. Its files and its address are kept.')).toBeVisible(IS_STOPPED);
  expect(await page.evaluate(async () => (await fetch('/api/status')).status)).toBe(503);
  // What was written is there when it is started again.
  await berth.getByRole('button', { name: `Start again ${session.name}` }).click();
  await berth.waitForURL((url) => url.origin === address(session), BEGINS);
  await berth.goto(`${session.url}lab/tree/Untitled.ipynb`);
  await expect(cell(berth, 0).locator('.jp-OutputArea-output')).toHaveText('42', BEGINS);
  await page.context().close();
  await machine.call('POST', `/sites/${SITE}/sessions/${session.id}/stop`, {});
  await expect.poll(async () => (await machine.session(session.id)).state, IS_STOPPED).toBe('stopped');
});

test('a kernel that takes all memory is ended, and its owner reads why while the notebook goes on', async ({ browser }) => {
  const page = await machine.page(browser);
  const session = await started(page, 'A notebook');
  await newNotebook(page);
  await run(page, 0, 'all = []\nwhile True: all.append(b"x" * 2**26)');
  const why = /A program in it, such as a notebook's kernel, was ended because the session used all of its 1 GiB of memory/;
  await expect.poll(async () => (await machine.session(session.id)).said ?? '', BEGINS).toMatch(new RegExp(why, 'i'));
  expect((await machine.session(session.id)).state).toBe('ready');
  const berth = await page.context().newPage();
  await berth.goto(`/sites/${SITE}/sessions/${session.id}`);
  await expect(berth.getByText(why)).toBeVisible();
  await expectAccessible(berth, 'a session in which a kernel ran out of memory');
  await berth.goto('/notifications');
  await expect(berth.getByText(`A program in your session was ended because it used all of its memory: ${session.name}`)).toBeVisible();
  // JupyterLab itself was not touched: a new kernel computes.
  await newNotebook(page);
  await run(page, 0, '6 * 7');
  await expect(cell(page, 0).locator('.jp-OutputArea-output')).toHaveText('42');
  await page.context().close();
  await machine.call('POST', `/sites/${SITE}/sessions/${session.id}/stop`, {});
  await expect.poll(async () => (await machine.session(session.id)).state, IS_STOPPED).toBe('stopped');
});

test('a kernel that computes keeps its session, and an open page alone does not', async ({ browser }) => {
  const busy = await machine.page(browser);
  const works = await started(busy, 'A notebook that is soon stopped');
  await newNotebook(busy);
  await run(busy, 0, 'import time\nwhile True: time.sleep(0.01)');
  await expect(busy.getByText('Python 3 (ipykernel) | Busy')).toBeVisible();
  // Nobody looks at it any more.
  await busy.context().close();

  const left = await machine.page(browser);
  const idles = await started(left, 'A notebook that is soon stopped');
  await newNotebook(left);
  await run(left, 0, '6 * 7');
  await expect(cell(left, 0).locator('.jp-OutputArea-output')).toHaveText('42');

  // Its page stays open, and asks the server how it is every few seconds.
  const about = await left.context().newPage();
  await about.goto(`/sites/${SITE}/sessions/${idles.id}`);
  await expect(about.getByText('Nobody has worked in it for a while.')).toBeVisible(IS_STOPPED);
  await expect(about.getByText('It is stopped. Its files and its address are kept.')).toBeVisible(IS_STOPPED);
  await expect(about.getByText('It was stopped because nothing was done in it').first()).toBeVisible();
  await expectAccessible(about, 'a session that was stopped for being idle');

  const still = await machine.session(works.id);
  expect(still.state).toBe('ready');
  // Longer than it may be idle, and all of it work.
  expect(Date.parse(still.active_at)).toBeGreaterThan(Date.parse((await machine.session(idles.id)).active_at));
  await left.context().close();
});

test('VS Code opens from the page, and what is typed in its terminal is carried out', async ({ browser }) => {
  const page = await machine.page(browser);
  const sockets: string[] = [];
  page.on('websocket', (socket) => sockets.push(new URL(socket.url()).origin));
  const session = await started(page, 'An editor');
  await expect(page.locator('.monaco-workbench')).toBeVisible(BEGINS);
  // It opens with the home, and asks nothing.
  await expect(page.getByRole('button', { name: /Explorer Section: ada/i })).toBeVisible(BEGINS);
  await page.keyboard.press('Control+Backquote');
  // What a terminal shows is painted, and not to be read; what it does is.
  const terminal = page.getByRole('textbox', { name: /^Terminal 1, bash/ });
  await terminal.focus(BEGINS);
  await page.keyboard.type('echo is $((6*7)) > answer.txt\n');
  await expect.poll(() => machine.written('answer.txt'), BEGINS).toBe('is 42\n');
  await page.getByRole('treeitem', { name: 'answer.txt' }).dblclick(BEGINS);
  await expect(page.locator('.view-lines').filter({ hasText: 'is\u00a042' })).toBeVisible();
  expect(new Set(sockets)).toEqual(new Set([address(session).replace('http', 'ws')]));
  await page.context().close();
});
