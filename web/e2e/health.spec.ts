/** How the server is, for those who look after it. */
import { expect, test } from '@playwright/test';
import { pageOf } from './people';

test('what is well is said, and read again by itself', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'ines', baseURL!);
  await page.goto('/admin/health');
  await expect(page.getByText('Everything is well.')).toBeVisible();
  await expect(page.getByRole('rowheader', { name: /sequencer/ })).toBeVisible();
  await page.waitForResponse('**/health/report', { timeout: 15_000 });
  await page.context().close();
});

test('what is wrong comes first, with what to do', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'ines', baseURL!);
  await page.route('**/health/report', async (route) => {
    const answer = await route.fetch();
    const report = (await answer.json()) as { controllers: { name: string; lag_s: number }[]; database: { disk: { free_bytes: number; total_bytes: number } | null } };
    report.controllers.find(({ name }) => name === 'reservations')!.lag_s = 900;
    // Of a database on another machine nobody knows the disk.
    report.database.disk = { total_bytes: 100_000_000_000, free_bytes: 500_000_000 };
    await route.fulfill({ response: answer, json: report });
  });
  await page.goto('/admin/health');
  const verdict = page.getByRole('region', { name: 'How it is', exact: true });
  await expect(verdict.getByText('2 things need attention.')).toBeVisible();
  await expect(verdict.getByRole('listitem').first()).toContainText('reservations is behind with something due. Look at the log');
  await expect(verdict.getByRole('listitem').last()).toContainText('Make room');
  await page.context().close();
});

test('it is for global admins only', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/admin/health');
  await expect(page.getByText('You may not see this page')).toBeVisible();
  await page.context().close();
});
