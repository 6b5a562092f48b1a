/** The administrators' forms: what they tell before, what they keep, what they take along. */
import { readFile } from 'node:fs/promises';
import { expect, test } from '@playwright/test';
import { call, pageOf } from './people';
import { DAY, later } from './when';

test('a status says who is told, and is taken back', async ({ browser, baseURL }) => {
  const title = `Told ${Date.now()}`;
  await call('priya', baseURL!, 'POST', '/sites/torino/reservations', { title, start: later(280, 9), end: later(280, 10), resources: [{ resource: 'bench-gpu' }] });
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/sites/torino/resources/bench-gpu');
  await page.getByRole('button', { name: 'Change status' }).click();
  await page.getByText(/(One person is|people are) told\./).click();
  await expect(page.getByRole('listitem').filter({ hasText: 'Priya Raghavan' }).filter({ has: page.getByRole('link') }).first()).toBeVisible();
  await page.getByRole('radiogroup', { name: 'New status' }).getByText('Maintenance').click();
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('bench-gpu: Maintenance')).toBeVisible();
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect.poll(async () => (await call<{ status: string }>('marco', baseURL!, 'GET', '/sites/torino/resources/bench-gpu')).status).toBe('ACTIVE');
  await page.context().close();
});

test('many resources are changed at once, and back', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/sites/torino/admin/resources');
  for (const name of ['bench-gpu', 'lab']) await page.getByRole('checkbox', { name: `Choose ${name}`, exact: true }).check();
  await page.getByLabel('Set an attribute').fill('checked = today');
  await page.getByRole('button', { name: 'Apply' }).click();
  await expect(page.getByText('2 resources changed.')).toBeVisible();
  const attributes = async () => (await call<{ attributes: Record<string, unknown> }>('marco', baseURL!, 'GET', '/sites/torino/resources/lab')).attributes;
  expect(await attributes()).toHaveProperty('checked', 'today');
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect.poll(attributes).not.toHaveProperty('checked');
  await page.context().close();
});

test('a type keeps every bound of its form, and shows what people will see', async ({ browser, baseURL }) => {
  const name = `kit-${Date.now()}`;
  await call('marco', baseURL!, 'POST', '/sites/torino/types', {
    name,
    title: 'Kit',
    colour: '#332288',
    parameters: [{ key: 'trained', label: 'Trained on', kind: { date: { min: '2020-01-01', max: '2030-12-31' } } }],
  });
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto(`/sites/torino/admin/types?type=${name}`);
  await expect(page.getByLabel('Earliest day')).toHaveValue('2020-01-01');
  await expect(page.getByRole('complementary').getByLabel('Trained on')).toHaveAttribute('max', '2030-12-31');
  await page.getByLabel('Latest day').fill('2031-12-31');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByText('Saved.')).toBeVisible();
  const { parameters } = await call<{ parameters: { kind: unknown }[] }>('marco', baseURL!, 'GET', `/sites/torino/types/${name}`);
  expect(parameters[0]?.kind).toEqual({ date: { min: '2020-01-01', max: '2031-12-31' } });
  await call('marco', baseURL!, 'DELETE', `/sites/torino/types/${name}`);
  await page.context().close();
});

test('a booking is tried against the rules, one by one', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/sites/torino/admin/policies');
  const box = page.getByRole('region', { name: 'Test a booking' });
  await box.getByLabel('Resources').fill('gpu-01.gpu0');
  await page.keyboard.press('Enter');
  await box.getByLabel('Length').fill('20d');
  await box.getByLabel('Length').blur();
  await box.getByLabel('For somebody else').fill('priya');
  await box.getByRole('button', { name: 'Test' }).click();
  await expect(box.getByText('The policies refuse it.')).toBeVisible();
  await expect(box.getByRole('listitem').filter({ hasText: 'Not kept: Lasts at most' })).toBeVisible();
  await page.context().close();
});

test('nobody who cannot decide becomes an approver unseen', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'chiara', baseURL!);
  await page.goto('/sites/bologna/admin/policies');
  await page.getByRole('button', { name: 'New policy' }).click();
  await page.getByLabel('Somebody must approve it first').check();
  await page.getByLabel('Who may decide in their stead').fill('ada');
  await expect(page.getByText('Write site_admins, person:')).toBeVisible();
  await expect(page.getByRole('button', { name: 'See the effect' })).toBeDisabled();
  await page.context().close();
});

test('a file with other policies shows them, and says when nothing differs', async ({ browser, baseURL }) => {
  const { document } = await call<{ document: { policies?: { asks: Record<string, unknown> }[] } }>('marco', baseURL!, 'GET', '/sites/torino/export');
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/sites/torino/admin/file');
  const text = page.getByLabel('Or paste it here');
  await text.fill(JSON.stringify(document));
  await page.getByRole('button', { name: 'Show the differences' }).click();
  await expect(page.getByText('The site is already as the file says.')).toBeVisible();
  const changed = structuredClone(document);
  changed.policies![0]!.asks.notice = '5m';
  await text.fill(JSON.stringify(changed));
  await page.getByRole('button', { name: 'Show the differences' }).click();
  await expect(page.getByRole('listitem').filter({ hasText: 'Policy' })).toContainText('notice');
  await page.context().close();
});

test('lists are taken along', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'marco', baseURL!);
  for (const [path, head, holds] of [
    ['/sites/torino/admin/members', 'login,name,role,since', 'marco,Marco Ferraris,site_admin,'],
    ['/sites/torino/admin/resources', 'name,title,type,parent,status', 'gpu-01'],
  ] as const) {
    await page.goto(path);
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'CSV' }).click()]);
    const text = await readFile(await file.path(), 'utf8');
    expect(text.startsWith(`\ufeff${head}`), path).toBe(true);
    expect(text).toContain(holds);
  }
  await page.context().close();
});

test('a global admin ends somebody’s token', async ({ browser, baseURL }) => {
  const label = `leaked ${Date.now()}`;
  await call('priya', baseURL!, 'POST', '/me/tokens', { label, scopes: ['read'], expires_at: new Date(Date.now() + 10 * DAY).toISOString() });
  const page = await pageOf(browser, 'ines', baseURL!);
  await page.goto('/admin/people?q=priya');
  await page.getByRole('button', { name: 'What to do with Priya Raghavan' }).click();
  await page.getByRole('link', { name: 'API tokens' }).click();
  await expect(page.getByRole('heading', { name: 'API tokens of Priya Raghavan' })).toBeVisible();
  await page.getByRole('button', { name: `Revoke ${label}` }).click();
  await expect(page.getByRole('row').filter({ hasText: label }).getByText('Revoked')).toBeVisible();
  await page.context().close();
});
