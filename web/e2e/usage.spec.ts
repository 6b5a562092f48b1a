/** How much is used: for a site's admins, for its members, for those who look after all sites. */
import { readFile } from 'node:fs/promises';
import { expect, test } from '@playwright/test';
import { pageOf } from './people';

test('an admin reads a site’s use, its numbers, and takes them along', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/sites/torino/usage?period=quarter');
  const course = page.getByRole('region', { name: 'How much is used over time?' }).first();
  await expect(course.getByRole('img')).toBeVisible();
  await expect(page.getByRole('img', { name: 'When is it busy?' })).toBeVisible();
  for (const title of ['Which types are used most?', 'Who uses the most?', 'Which projects use the most?', 'How long ahead is it booked?', 'What did not take place?', 'Refusals']) {
    await expect(page.getByRole('heading', { name: title })).toBeVisible();
  }
  await expect(course.getByRole('table')).toHaveCount(0);
  await course.getByRole('button', { name: 'Numbers' }).click();
  await expect(course.getByRole('columnheader', { name: 'Utilisation' })).toBeVisible();
  const [file] = await Promise.all([page.waitForEvent('download'), course.getByRole('button', { name: 'CSV' }).click()]);
  expect(file.suggestedFilename()).toMatch(/^usage-torino-\d{4}-\d{2}-01-course\.csv$/);
  expect(await readFile(await file.path(), 'utf8')).toMatch(/^\ufeffWhen,Utilisation,Hours used,Hours there were\r\n/);
  await page.context().close();
});

test('the period lives in the address, and all charts follow it', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/sites/torino/usage');
  await page.getByText('Own dates').click();
  await expect(page).toHaveURL(/period=own&from=\d{4}-\d{2}-01&to=/);
  const answer = page.waitForResponse(/\/usage\?.*bucket=hour/);
  const day = new URL(page.url()).searchParams.get('from')!;
  await page.getByLabel('Up to and with').fill(day);
  await answer;
  await expect(page).toHaveURL(new RegExp(`from=${day}&to=${day}`));
  await page.getByRole('button', { name: 'Earlier' }).click();
  await expect(page).not.toHaveURL(new RegExp(`from=${day}`));
  await page.getByRole('combobox', { name: 'Type' }).selectOption('gpu');
  await expect(page).toHaveURL(/type=gpu/);
  await page.reload();
  await expect(page.getByRole('combobox', { name: 'Type' })).toHaveValue('gpu');
  await page.context().close();
});

test('a member sees what is theirs, and nobody else', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto('/sites/torino/usage');
  await expect(page.getByRole('heading', { name: 'Your use of torino' })).toBeVisible();
  await expect(page.getByRole('heading', { name: 'When is it busy?' })).toBeVisible();
  await expect(page.getByRole('heading', { name: 'Who uses the most?' })).toHaveCount(0);
  await expect(page.getByRole('heading', { name: 'Refusals' })).toHaveCount(0);
  await page.context().close();
});

test('all sites side by side, each leading to its own page in the same time', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'ines', baseURL!);
  await page.goto('/admin/usage?period=quarter');
  await page.getByRole('link', { name: 'torino', exact: true }).click();
  await expect(page).toHaveURL(/\/sites\/torino\/usage\?period=quarter/);
  await page.context().close();
});

test('on paper the numbers stand beside the charts, and the acts do not', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'marco', baseURL!, { colorScheme: 'dark' });
  await page.goto('/sites/torino/usage');
  const course = page.getByRole('region', { name: 'How much is used over time?' }).first();
  await expect(course.getByRole('img')).toBeVisible();
  await page.emulateMedia({ media: 'print' });
  await expect(course.getByRole('table')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Print' })).toBeHidden();
  expect(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)).toBe('rgb(255, 255, 255)');
  await page.context().close();
});
