/**
 * Sessions: started with one press, followed, stopped, started again, shared; and what admins see.
 *
 * The site is simulated, and nothing answers at a simulated machine: what is started stays on its way. What a page does with
 * one that is ready, or was given up, is shown with the server's own answer, changed on its way to the browser.
 */
import { expect, test, type Page } from '@playwright/test';
import { expectAccessible } from './axe';
import { call, pageOf, watchConsole } from './people';
import { removed, started, withPresets, type Made } from './sessions';

/** What is told to stop has the site's grace to do so. */
const GRACE = { timeout: 60_000 };
const placeOf = ({ id }: Made) => `/sites/torino/sessions/${id}`;
const rowOf = (page: Page, name: string) => page.getByRole('listitem').filter({ has: page.getByRole('link', { name, exact: true }) });
const stepsOf = (page: Page) => page.getByRole('list', { name: 'How far it is' });

/** The server's answer about this session, with something else in it. */
async function seenAs(page: Page, session: Made, patch: (before: Record<string, unknown>) => object): Promise<void> {
  await page.route(`**/api/v1${placeOf(session)}`, async (route) => {
    const response = await route.fetch();
    const before = (await response.json()) as Record<string, unknown>;
    await route.fulfill({ response, json: { ...before, ...patch(before) } });
  });
}

test('one press starts a session, its page says how far it is, and it is stopped, started again and removed', async ({ browser, baseURL }) => {
  test.slow();
  await withPresets(baseURL!);
  const page = await pageOf(browser, 'priya', baseURL!);
  const errors = watchConsole(page);
  await page.goto('/sites/torino');
  await page.getByRole('link', { name: 'Start a session' }).click();
  await page.getByRole('button', { name: 'Start A small notebook', exact: true }).click();
  await expect(page).toHaveURL(/\/sites\/torino\/sessions\/ses_\w+\?open=1$/);
  const id = /ses_\w+/.exec(page.url())![0];
  const name = (await page.getByRole('heading', { level: 1 }).textContent())!;
  expect(name).toMatch(/^e2e-lab/);
  await expect(stepsOf(page).getByRole('listitem')).toHaveText([/In the queue/, /Has a place/, /Starts/, /Ready/]);
  // It gets a place by itself, and the page follows.
  await expect(stepsOf(page).locator('[aria-current]')).toContainText('Starts');
  await expect(stepsOf(page)).toContainText(/on node-|on cpu-|on gpu-/);
  await expect(page.getByText('It opens here by itself as soon as it answers')).toBeVisible();
  await expectAccessible(page, 'a session that starts');

  await page.getByRole('button', { name: `Stop ${name}` }).click();
  const dialog = page.getByRole('dialog', { name: `Stop “${name}”?` });
  await expect(dialog).toContainText('Files stay');
  await dialog.getByRole('button', { name: 'Stop', exact: true }).click();
  await expect(page.getByText('It is stopped. Its files and its address are kept.')).toBeVisible(GRACE);
  await page.getByRole('button', { name: `Start again ${name}` }).click();
  await expect(stepsOf(page)).toBeVisible();
  await expect(page).toHaveURL(/open=1/);

  await page.getByRole('link', { name: 'torino · Sessions' }).click();
  await expect(rowOf(page, name)).toContainText('Starting');
  await rowOf(page, name).getByRole('button', { name: `Stop ${name}` }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Stop', exact: true }).click();
  await expect(rowOf(page, name)).toContainText('Stopped', GRACE);
  await rowOf(page, name).getByRole('button', { name: `More about ${name}` }).click();
  await page.getByRole('button', { name: 'Remove…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click();
  await expect(rowOf(page, name)).toHaveCount(0);
  expect((await call<{ items: Made[] }>('priya', baseURL!, 'GET', '/sites/torino/sessions')).items.map((one) => one.id)).not.toContain(id);
  expect(errors).toEqual([]);
  await page.context().close();
});

test('what few starts need is folded away, and a name that is taken is told at its field', async ({ browser, baseURL }) => {
  const session = await started(baseURL!, 'e2e-never');
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto('/sites/torino/sessions');
  await page.getByRole('button', { name: /^More….*A small notebook$/ }).click();
  const dialog = page.getByRole('dialog', { name: 'Start “A small notebook”' });
  await dialog.getByLabel('Name').fill(session.name);
  await dialog.getByRole('button', { name: 'Start' }).click();
  await expect(dialog.getByRole('alert')).toContainText(session.name);
  await expectAccessible(page, 'more choices');
  const name = `n${Date.now()}`;
  await dialog.getByLabel('Name').fill(name);
  await dialog.getByRole('button', { name: 'Start' }).click();
  await expect(page.getByRole('heading', { level: 1, name })).toBeVisible();
  await page.context().close();
  await removed(baseURL!, name);
  await removed(baseURL!, session.id);
});

test('one that waits says why, and what would change it', async ({ browser, baseURL }) => {
  const session = await started(baseURL!, 'e2e-never');
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto(placeOf(session));
  await expect(stepsOf(page).locator('[aria-current]')).toContainText(/In the queue.*so far/);
  await expect(page.getByText('it asks for more than there is')).toBeVisible();
  await expect(page.getByText('What would change it: Ask for less.')).toBeVisible();
  await page.context().close();
  await removed(baseURL!, session.id);
});

test('a session known by its id alone is found, and one that is not there is not looked for for ever', async ({ browser, baseURL }) => {
  const session = await started(baseURL!, 'e2e-never');
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto(`/sessions/${session.id}?to=%2Flab`);
  await expect(page).toHaveURL(new RegExp(`/sites/torino/sessions/${session.id}\\?open=1&to=%2Flab$`));
  await expect(page.getByRole('heading', { level: 1, name: session.name })).toBeVisible();
  await page.goto('/sessions/ses_01aaaaaaaaaaaaaaaaaaaaaaaa');
  await expect(page.getByText('There is no such session')).toBeVisible();
  await page.context().close();
  await removed(baseURL!, session.id);
});

test('whoever comes by a session’s address and has to sign in goes on to the session', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, null, baseURL!);
  await page.goto('/sign-in?next=%2Fopen%2Fabc%3Fto%3D%252Flab');
  await page.getByLabel('Login name').fill('priya');
  await page.getByLabel('Password').fill('demo-berth-2026');
  // The server answers for it, and not these pages.
  const gone = page.waitForRequest((request) => request.isNavigationRequest() && new URL(request.url()).pathname === '/open/abc');
  await page.getByRole('button', { name: 'Sign in' }).click();
  expect(new URL((await gone).url()).search).toBe('?to=%2Flab');
  await page.context().close();
});

test('one that is ready is opened for whoever waits for it, and not for whoever looks at it', async ({ browser, baseURL }) => {
  const session = await started(baseURL!, 'e2e-never');
  const page = await pageOf(browser, 'priya', baseURL!);
  const front = `${baseURL}/design`;
  await seenAs(page, session, () => ({ state: 'ready', url: `${front}/`, idle_until: new Date(Date.now() + 20 * 60_000).toISOString(), is_warned: true }));
  await page.goto(placeOf(session));
  await expect(page.getByText('It is ready.')).toBeVisible();
  await expect(page.getByRole('link', { name: `Open ${session.name}` })).toHaveAttribute('target', '_blank');
  await expect(page.getByText(/It is stopped in (19|20) minutes\./)).toBeVisible();
  await expectAccessible(page, 'a session that is ready');
  await page.goto(`${placeOf(session)}?open=1`);
  await expect(page).toHaveURL(`${front}/`);
  // What sends people back here must not send them to and fro for ever.
  await page.goto(`${placeOf(session)}?open=1`);
  await expect(page.getByText('It was opened from here a moment ago.')).toBeVisible();
  await page.context().close();
  await removed(baseURL!, session.id);
});

test('one that was given up says what failed and why nothing is tried any more, and offers to try again', async ({ browser, baseURL }) => {
  const session = await started(baseURL!, 'e2e-never');
  const page = await pageOf(browser, 'priya', baseURL!);
  const start = (automatic: boolean) => ({ asked_at: new Date().toISOString(), ended_at: new Date().toISOString(), is_automatic: automatic, has_failed: true, said: 'its program ended with the code 127' });
  await seenAs(page, session, () => ({ state: 'failed', is_given_up: true, said: 'its program ended with the code 127', starts: [start(true), start(true), start(true), start(true), start(false)] }));
  await page.route(`**/api/v1${placeOf(session)}/log`, (route) => route.fulfill({ json: { text: 'first line\nsh: jupyter-lab: not found\n' } }));
  await page.goto(`${placeOf(session)}?open=1`);
  await expect(page.getByText('It failed 5 times in a row')).toBeVisible();
  await expect(page.getByRole('group', { name: 'The end of its log' })).toContainText('jupyter-lab: not found');
  await expect(page.getByRole('button', { name: `Try again ${session.name}` })).toBeVisible();
  await expectAccessible(page, 'a session that was given up');
  await page.context().close();
  await removed(baseURL!, session.id);
});

test('one that is tried again by itself says the how manieth time', async ({ browser, baseURL }) => {
  const session = await started(baseURL!, 'e2e-never');
  const page = await pageOf(browser, 'priya', baseURL!);
  const asked_at = new Date().toISOString();
  await seenAs(page, session, () => ({ said: 'it did not answer within 300 s', starts: [{ asked_at, is_automatic: true, has_failed: false }, { asked_at, is_automatic: false, has_failed: true }] }));
  await page.goto(placeOf(session));
  await expect(page.getByText('Tried again by itself (2 of 5).')).toBeVisible();
  await expect(page.getByText('The last try: It did not answer within 300 s.')).toBeVisible();
  await page.context().close();
  await removed(baseURL!, session.id);
});

test('a session is renamed and shared, and the colleague finds it among theirs', async ({ browser, baseURL }) => {
  const session = await started(baseURL!, 'e2e-never');
  const name = `r${Date.now()}`;
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto(placeOf(session));
  await page.getByRole('button', { name: `More about ${session.name}` }).click();
  await page.getByRole('button', { name: 'Rename…' }).click();
  const dialog = page.getByRole('dialog', { name: `Rename “${session.name}”` });
  await dialog.getByLabel('Name').fill(name);
  await dialog.getByRole('button', { name: 'Rename' }).click();
  await expect(page.getByRole('heading', { level: 1, name })).toBeVisible();
  const card = page.getByRole('region', { name: 'Share' });
  await card.getByLabel('With whom').fill('marco');
  await card.getByRole('button', { name: 'Share' }).click();
  await expect(card.getByRole('listitem')).toContainText('Marco Ferraris');
  await card.getByLabel('They: Marco Ferraris').selectOption('may work in it');

  const colleague = await pageOf(browser, 'marco', baseURL!);
  await colleague.goto('/sites/torino/sessions');
  const shared = colleague.getByRole('region', { name: 'Shared with me' });
  await expect(shared.getByRole('listitem').filter({ hasText: name })).toContainText('of Priya Raghavan · may work in it');
  await card.getByRole('button', { name: 'Take the access of Marco Ferraris away' }).click();
  await expect(page.getByText('It is shared with nobody.')).toBeVisible();
  await page.getByRole('button', { name: 'Undo' }).last().click();
  await expect(card.getByRole('listitem')).toContainText('Marco Ferraris');
  await colleague.context().close();
  await page.context().close();
  await removed(baseURL!, session.id);
});

test('an admin sees everybody’s, stops one with a reason, and its owner reads it', async ({ browser, baseURL }) => {
  const session = await started(baseURL!, 'e2e-never');
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/sites/torino/admin/sessions');
  const row = page.getByRole('row').filter({ hasText: session.name });
  await expect(row).toContainText('Priya Raghavan');
  await expect(page.getByRole('region', { name: 'People' }).getByRole('row').filter({ hasText: 'priya' }).first()).toContainText(/\d/);
  await row.getByRole('button', { name: `Stop ${session.name}` }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Stop', exact: true }).click();
  await expect(dialog).toBeVisible();
  await dialog.getByLabel('Reason').fill('The node is needed for the practical.');
  await dialog.getByRole('button', { name: 'Stop', exact: true }).click();
  await expect(row).toContainText('Stopped');
  const owner = await pageOf(browser, 'priya', baseURL!);
  await owner.goto(placeOf(session));
  await expect(owner.getByText('Marco Ferraris stopped it: The node is needed for the practical.').first()).toBeVisible();
  await owner.context().close();
  await page.context().close();
  await removed(baseURL!, session.id);
});

test('an admin who opens somebody else’s session is asked why', async ({ browser, baseURL }) => {
  const session = await started(baseURL!, 'e2e-never');
  const page = await pageOf(browser, 'marco', baseURL!);
  await seenAs(page, session, () => ({ state: 'ready' }));
  let told = {};
  await page.route(`**/api/v1${placeOf(session)}/visits`, async (route) => {
    if (route.request().method() !== 'POST') return route.fallback();
    told = route.request().postDataJSON() as object;
    return route.fulfill({ json: { url: `${baseURL}/design` } });
  });
  await page.goto(`${placeOf(session)}?ask=reason&to=%2Flab`);
  const dialog = page.getByRole('dialog', { name: `Open “${session.name}” of Priya Raghavan` });
  await expect(dialog).toContainText('it is written into the audit log');
  await dialog.getByLabel('Reason').fill('She asked me to look at her kernel.');
  await dialog.getByRole('button', { name: 'Open', exact: true }).click();
  await expect(page).toHaveURL(`${baseURL}/design`);
  expect(told).toEqual({ reason: 'She asked me to look at her kernel.', to: '/lab' });
  await page.context().close();
  await removed(baseURL!, session.id);
});

test('a preset for sessions and an app of the site’s own are made in the queue’s settings', async ({ browser, baseURL }) => {
  await withPresets(baseURL!);
  const before = await call<{ settings: { profiles: Record<string, object> } }>('marco', baseURL!, 'GET', '/sites/torino/queue/settings');
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/sites/torino/admin/queue');
  await page.getByRole('button', { name: 'Add an app' }).click();
  const apps = page.getByRole('region', { name: 'The site’s own apps' }).getByRole('listitem').last();
  await apps.getByLabel('Name').fill('e2e-notes');
  await apps.getByLabel('Title').fill('Notes');
  await apps.getByLabel('Command').fill('notes\n--socket={socket}');
  await page.getByRole('button', { name: 'Add a preset' }).click();
  const preset = page.getByRole('region', { name: 'Presets' }).getByRole('listitem').last();
  await preset.getByLabel('Name').fill('e2e-notes');
  await preset.getByLabel('Title').fill('Notes for all');
  await preset.getByLabel('People start sessions from it').check();
  await preset.getByLabel('App', { exact: true }).selectOption('e2e-notes');
  await preset.getByLabel('Stopped when idle for').fill('45m');
  await expectAccessible(page, 'the settings with a preset for sessions');
  await page.getByRole('button', { name: 'Save all of it' }).click();
  await expect(page.getByText('Saved.', { exact: true })).toBeVisible();
  const { settings } = await call<{ settings: { profiles: Record<string, { session?: object }>; apps: object } }>('marco', baseURL!, 'GET', '/sites/torino/queue/settings');
  expect(settings.profiles['e2e-notes']?.session).toMatchObject({ app: 'e2e-notes', idle: 'PT45M' });
  // What was there already is still for sessions.
  expect(settings.profiles['e2e-lab']?.session).toMatchObject({ app: 'jupyterlab', idle: 'PT1H' });
  await page.goto('/sites/torino/sessions');
  await expect(page.getByRole('article').filter({ hasText: 'Notes for all' })).toContainText('stopped after 45 min without work');
  await call('marco', baseURL!, 'PUT', '/sites/torino/queue/settings', before.settings);
  await page.context().close();
});

test('everybody is told where sessions share Berth’s own address, and nobody where they do not', async ({ browser, baseURL }) => {
  const note = 'Sessions share Berth’s own address.';
  for (const who of [null, 'priya'] as const) {
    const page = await pageOf(browser, who, baseURL!);
    await page.goto('/sign-in');
    await expect(page.getByRole('main')).toBeVisible();
    await expect(page.getByRole('complementary', { name: note })).toHaveCount(0);
    await page.route('**/api/v1/about', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...((await response.json()) as object), sessions_share_origin: true } });
    });
    await page.goto(who ? '/sites/torino' : '/sign-in');
    await expect(page.getByRole('complementary', { name: note })).toBeVisible();
    await expectAccessible(page, 'the note on sessions that share an address');
    await page.context().close();
  }
});
