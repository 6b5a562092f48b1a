/** What others do is seen at once; a lost line is told and heals. */
import { expect, test } from '@playwright/test';
import { call, pageOf } from './people';
import { later } from './when';

test('a booking by one is seen by another without reloading', async ({ browser, baseURL }) => {
  const title = `Live ${Date.now()}`;
  const page = await pageOf(browser, 'priya', baseURL!);
  const listening = page.waitForResponse('**/events/stream');
  await page.goto(`/sites/torino?q=bench-gpu&from=${later(240, 0)}&to=${later(241, 0)}`);
  await expect(page.getByText('bench-gpu').first()).toBeVisible();
  await listening;
  const body = { title, start: later(240, 9), end: later(240, 15), resources: [{ resource: 'bench-gpu' }] };
  await call('marco', baseURL!, 'POST', '/sites/torino/reservations', body);
  // How soon is measured where machines are idle: `make bench ONLY=web`.
  await expect(page.locator('[data-item]', { hasText: title })).toBeVisible();
  await page.context().close();
});

test('a lost connection is shown, and heals with what was missed', async ({ browser, baseURL }) => {
  const title = `Missed ${Date.now()}`;
  const page = await pageOf(browser, 'priya', baseURL!);
  // The line breaks at once when its request is refused; a real one takes as long as the network notices.
  await page.goto(`/sites/torino?q=bench-gpu&from=${later(250, 0)}&to=${later(251, 0)}`);
  await expect(page.getByText('bench-gpu').first()).toBeVisible();
  await page.route('**/api/v1/**', (route) => route.abort());
  await page.goto(`/sites/torino?q=bench-gpu&from=${later(250, 0)}&to=${later(251, 0)}`);
  await expect(page.getByText('Berth cannot be reached').first()).toBeVisible();
  const body = { title, start: later(250, 9), end: later(250, 15), resources: [{ resource: 'bench-gpu' }] };
  await call('marco', baseURL!, 'POST', '/sites/torino/reservations', body);
  await page.unroute('**/api/v1/**');
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.locator('[data-item]', { hasText: title })).toBeVisible();
  await page.context().close();
});

test('offline and back, with the page open', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto('/bookings');
  await expect(page.getByRole('heading', { name: 'My bookings' })).toBeVisible();
  await expect(page.locator('.skeleton')).toHaveCount(0);
  await page.context().setOffline(true);
  await expect(page.getByText('Changes are refused until the line is back.')).toBeVisible({ timeout: 60_000 });
  await page.context().setOffline(false);
  await expect(page.getByText('The connection is back.')).toBeVisible({ timeout: 30_000 });
  await page.context().close();
});
