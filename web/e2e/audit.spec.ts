/** Finding things in the audit log, and taking them along. */
import { readFile } from 'node:fs/promises';
import { expect, test } from '@playwright/test';
import { call, pageOf } from './people';

test('the log is narrowed by who, what and about what, and the view is a link', async ({ browser, baseURL }) => {
  const reason = `Fan ${Date.now()}`;
  await call('marco', baseURL!, 'PATCH', '/sites/torino/resources/bench-gpu/status', { status: 'MAINTENANCE', reason });
  await call('marco', baseURL!, 'PATCH', '/sites/torino/resources/bench-gpu/status', { status: 'ACTIVE' });
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/sites/torino/admin/audit');
  await page.getByRole('combobox', { name: 'Who' }).fill('marco');
  await page.getByRole('combobox', { name: 'What' }).fill('resource');
  await page.getByRole('searchbox', { name: 'About' }).fill(reason);
  await expect(page).toHaveURL(/who=marco&action=resource&q=/);
  const line = page.getByRole('listitem').filter({ hasText: reason });
  await expect(line).toHaveCount(1);
  await expect(line).toContainText('torino / bench-gpu');
  await line.locator('summary').click();
  await expect(line.getByRole('cell', { name: 'Maintenance' })).toBeVisible();
  await expect(page.getByRole('status').filter({ hasText: '1 of' })).toBeVisible();
  await page.reload();
  await expect(line).toHaveCount(1);
  const [csv] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'CSV' }).click()]);
  expect(await readFile(await csv.path(), 'utf8')).toContain(`marco,resource.status,torino`);
  const [json] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'JSON' }).click()]);
  expect(JSON.parse(await readFile(await json.path(), 'utf8'))).toHaveLength(1);
  await page.context().close();
});

test('what lies further back is looked for, and a time ends the search', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'ines', baseURL!);
  await page.goto('/admin/audit?action=site.create');
  await expect(page.getByText('site.create').first()).toBeVisible();
  await expect(page.getByText(/the log was read to its beginning/)).toBeVisible();
  const today = new Date().toISOString().slice(0, 10);
  await page.goto(`/admin/audit?action=site.create&from=${today}`);
  await expect(page.getByText('Nothing matches.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Look further back' })).toHaveCount(0);
  await page.context().close();
});
