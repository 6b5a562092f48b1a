/** The queue: looked at, submitted to, held, released, cancelled; shares, settings and urgency. */
import { expect, test, type Page } from '@playwright/test';
import { expectAccessible } from './axe';
import { call, pageOf, watchConsole, type Who } from './people';

interface Made {
  readonly number: number;
  readonly title: string;
}

/** Held from the start, so that it is there for as long as the test looks at it. */
async function submitted(baseURL: string, title: string, more: object = {}, who: Who = 'priya'): Promise<Made> {
  const wishes = [{ task: { cores_milli: 1_000, memory_mib: 1_024 }, limit: 'PT10M' }];
  return call<Made>(who, baseURL, 'POST', '/sites/torino/workloads', { title, held: true, wishes, ...more });
}

/** A title that no earlier run has left behind. */
const fresh = (what: string) => `${what} ${Date.now() % 1_000_000}`;
const rowOf = (page: Page, title: string) => page.getByRole('row').filter({ hasText: title });

test('a preset is submitted in a few clicks, and its page says how it stands', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'priya', baseURL!);
  const errors = watchConsole(page);
  const title = fresh('From a preset');
  await page.goto('/sites/torino/queue');
  await page.getByRole('link', { name: 'Submit work' }).first().click();
  await page.getByRole('radio', { name: /^A few cores, no GPU/ }).check();
  await page.getByLabel('Title').fill(title);
  await expect(page.getByText(`berth submit --site torino --title '${title}' --profile small`)).toBeVisible();
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await expect(page).toHaveURL(/\/sites\/torino\/queue\/\d+$/);
  await expect(page.getByRole('heading', { name: title })).toBeVisible();
  await expect(page.getByText('4 cores, 16 GiB, up to 4 h')).toBeVisible();
  await expect(page.getByRole('img', { name: `How “${title}” went, task by task` })).toBeVisible();
  expect(errors).toEqual([]);
  await page.context().close();
});

test('what is asked for stands in words and on the command line, and what is wrong stands at its field', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto('/sites/torino/queue/submit');
  await page.getByLabel('Title').fill(fresh('By hand'));
  await page.getByRole('radio', { name: /^Something else/ }).check();
  await page.getByRole('radiogroup', { name: 'GPU' }).getByText('Whole GPUs').click();
  await page.getByLabel('Model').selectOption('A100');
  await page.getByRole('spinbutton', { name: 'Tasks' }).fill('4');
  await page.getByLabel('Time limit').fill('200h');
  await expect(page.getByText('4 × (1 GPU A100, 8 cores, 64 GiB), up to 8 d 8 h.')).toBeVisible();
  await expect(page.getByText(/--gpus 1 --gpu-model A100 --cores 8 --memory 64GiB --tasks 4 --time 8d8h/)).toBeVisible();
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await expect(page.getByLabel('Time limit')).toHaveAccessibleDescription(/the longest limit at this site is \d+ hours/);
  await page.getByLabel('Time limit').fill('2h');
  await page.getByText('More: many tasks').click();
  await page.getByLabel('After other work').fill('99999999');
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await expect(page.getByLabel('After other work')).toHaveAccessibleDescription(/There is no work numbered 99999999 here/);
  await expectAccessible(page, 'the whole form with an error');
  await page.context().close();
});

test('what is held is released from the list, held again, taken back and cancelled', async ({ browser, baseURL }) => {
  const title = fresh('Held for a while');
  const { number } = await submitted(baseURL!, title, { not_before: new Date(Date.now() + 30 * 24 * 3_600_000).toISOString() });
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto('/sites/torino/queue?mine=1');
  const row = rowOf(page, title);
  await expect(row).toContainText('It is held.');
  await row.getByRole('button', { name: `Release: ${number}, ${title}` }).click();
  await expect(row).toContainText('Waiting');
  await row.getByRole('button', { name: `Hold: ${number}, ${title}` }).click();
  await expect(row).toContainText('Held');
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(row).toContainText('Waiting');
  await row.getByRole('button', { name: `Cancel: ${number}, ${title}` }).click();
  const dialog = page.getByRole('dialog', { name: `Cancel ${number}, “${title}”?` });
  await expect(dialog).toContainText('It leaves the queue.');
  await dialog.getByRole('button', { name: 'Cancel it' }).click();
  await expect(row).toHaveCount(0);
  await page.getByText('Over', { exact: true }).click();
  await expect(rowOf(page, title)).toContainText('Cancelled');
  await page.context().close();
});

test('filters live in the address, and what others submit appears by itself', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'marco', baseURL!);
  const title = fresh('Seen live');
  await page.goto('/sites/torino/queue');
  await page.getByRole('searchbox', { name: 'Number, title, person or node' }).fill(title);
  await expect(page).toHaveURL(/q=Seen/);
  await expect(page.getByText('Nothing matches these filters')).toBeVisible();
  await submitted(baseURL!, title, { array: { tasks: '0-39', at_once: 2 } });
  await expect(rowOf(page, title)).toContainText('0 of 40');
  await page.reload();
  await expect(rowOf(page, title)).toBeVisible();
  await page.context().close();
});

test('an admin who cancels what is somebody else’s says why, and the owner reads it', async ({ browser, baseURL }) => {
  const title = fresh('Against the rules');
  const { number } = await submitted(baseURL!, title);
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto(`/sites/torino/queue/${number}`);
  await page.getByRole('button', { name: 'Cancel' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Cancel it' }).click();
  await expect(dialog).toBeVisible();
  await dialog.getByLabel('Reason').fill('The node is needed for the practical.');
  await dialog.getByRole('button', { name: 'Cancel it' }).click();
  const owner = await pageOf(browser, 'priya', baseURL!);
  await owner.goto(`/sites/torino/queue/${number}`);
  await expect(owner.getByText('Reason given: The node is needed for the practical.')).toBeVisible();
  await owner.getByRole('link', { name: 'Submit again' }).click();
  await expect(owner.getByLabel('Title')).toHaveValue(title);
  await owner.context().close();
  await page.context().close();
});

test('others’ work can be seen, and neither held nor cancelled', async ({ browser, baseURL }) => {
  const other = await submitted(baseURL!, fresh('Of marco'), {}, 'marco');
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto(`/sites/torino/queue/${other.number}`);
  await expect(page.getByRole('heading', { name: 'What was asked for' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Cancel' })).toHaveCount(0);
  await expect(page.getByRole('heading', { name: 'What runs' })).toHaveCount(0);
  await page.context().close();
});

test('shares show due and used, and the numbers behind them', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto('/sites/torino/queue/shares');
  await expect(page.getByRole('img', { name: /^Street scenes at night: Due [\d.]+%, Used [\d.]+%$/ })).toBeVisible();
  await page.getByRole('button', { name: 'Numbers' }).click();
  await expect(page.getByRole('columnheader', { name: 'Of its share' })).toBeVisible();
  await page.context().close();
});

test('settings are saved, and a change by another is told, not overwritten', async ({ browser, baseURL }) => {
  const before = await call<{ settings: object }>('marco', baseURL!, 'GET', '/sites/torino/queue/settings');
  await call('marco', baseURL!, 'PUT', '/sites/torino/queue/settings', { ...before.settings, limit_max: 'PT72H', run_min: 'PT5M' });
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/sites/torino/admin/queue');
  const save = page.getByRole('button', { name: 'Save all of it' });
  const limit = page.getByLabel('Longest time limit');
  await expect(save).toBeDisabled();
  await limit.fill('4d');
  await save.click();
  await expect(page.getByText('Saved.', { exact: true })).toBeVisible();
  await limit.fill('5d');
  const { settings } = await call<{ settings: object }>('ines', baseURL!, 'GET', '/sites/torino/queue/settings');
  await call('ines', baseURL!, 'PUT', '/sites/torino/queue/settings', { ...settings, run_min: 'PT7M' });
  await save.click();
  await expect(page.getByRole('alert')).toContainText('Somebody else saved settings while you were changing them');
  await expect(limit).toHaveValue('5d');
  await page.getByRole('button', { name: 'Load theirs' }).click();
  await expect(limit).toHaveValue('4d');
  await expect(page.getByLabel('Runs undisturbed for')).toHaveValue('7m');
  await limit.fill('3d');
  await page.getByLabel('Runs undisturbed for').fill('5m');
  await save.click();
  await expect(save).toBeDisabled();
  await page.context().close();
});

test('work is made urgent with a reason that all can read, and that is taken back', async ({ browser, baseURL }) => {
  const reason = fresh('The paper is due on Friday');
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/sites/torino/admin/queue');
  const card = page.getByRole('region', { name: 'Urgent work' });
  await card.getByLabel('Whose').selectOption('language');
  await card.getByLabel('GPU-hours').fill('50');
  await card.getByLabel('Reason').fill(reason);
  await card.getByRole('button', { name: 'Make urgent' }).click();
  const member = await pageOf(browser, 'priya', baseURL!);
  await member.goto('/sites/torino/queue/shares');
  await expect(member.getByRole('listitem').filter({ hasText: reason }).last()).toContainText('50 GPU-hours until');
  await card.getByRole('listitem').filter({ hasText: reason }).getByRole('button', { name: /^Take back/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Take back' }).click();
  await expect(member.getByRole('listitem').filter({ hasText: reason }).filter({ hasText: 'urgent' })).toHaveCount(0);
  await member.context().close();
  await page.context().close();
});

test('one’s own work stands beside one’s bookings and on the status line, and a number typed leads to it', async ({ browser, baseURL }) => {
  const title = fresh('Mine to find');
  const { number } = await submitted(baseURL!, title);
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto('/bookings');
  await page.getByText(/^In the queue \(\d+\)$/).click();
  await page.getByRole('link', { name: title }).click();
  await expect(page.getByRole('heading', { name: title })).toBeVisible();
  await page.goto('/sites/torino');
  await expect(page.getByRole('region', { name: 'How it is now' }).getByRole('link', { name: /^In the queue: .*wait/ })).toBeVisible();
  await page.keyboard.press('Control+k');
  await page.getByPlaceholder('Go to a page, a site or a resource').fill(`why ${number}`);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: title })).toBeVisible();
  await page.context().close();
});

test('what runs on a machine is named on its page, and leads to the work', async ({ browser, baseURL }) => {
  type Listed = { title: string; runs: { until: string; nodes: { node: { name: string } }[] }[] };
  // In the evening the demo's people may have nothing that runs.
  const wishes = [{ task: { cores_milli: 1_000, memory_mib: 1_024 }, limit: 'PT8H' }];
  await submitted(baseURL!, fresh('Runs tonight'), { held: false, wishes, array: { tasks: '0-3' } });
  const running = async () => {
    const { items } = await call<{ items: Listed[] }>('priya', baseURL!, 'GET', '/sites/torino/workloads?state=running&limit=500');
    return items.flatMap(({ title, runs }) => runs.flatMap(({ until, nodes }) => nodes.map(({ node }) => ({ title, until, node: node.name }))));
  };
  await expect.poll(async () => (await running()).length).toBeGreaterThan(0);
  const tasks = await running();
  const countOn = (node: string) => tasks.filter((task) => task.node === node).length;
  // A page lists a dozen, and what goes on longest is still there when it is looked at.
  const [task] = tasks.filter(({ node }) => countOn(node) <= 6).sort((one, other) => other.until.localeCompare(one.until));
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto(`/sites/torino/resources/${task!.node}`);
  await page.getByRole('link', { name: task!.title, exact: true }).first().click();
  await expect(page).toHaveURL(/\/sites\/torino\/queue\/job_/);
  await expect(page.getByRole('heading', { name: task!.title })).toBeVisible();
  await page.context().close();
});
