/** What the server tells a person: live in the header, read and unread, and with the act that matters. */
import { expect, test, type Page } from '@playwright/test';
import { call, pageOf } from './people';
import { later } from './when';

interface Booking {
  id: string;
  state: string;
  end: string;
}

const bench = (title: string, start: string, end: string) => ({ title, start, end, resources: [{ resource: 'bench-gpu' }] });
const row = (page: Page, title: string) => page.getByRole('listitem').filter({ hasText: title });
const state = (baseURL: string, id: string) => call<Booking>('priya', baseURL, 'GET', `/sites/torino/reservations/${id}`);

/** A GPU that nobody needs for so long. */
async function freeGpu(baseURL: string, milliseconds: number): Promise<string> {
  const [from, to] = [0, milliseconds].map((after) => new Date(Date.now() + after).toISOString());
  const { items } = await call<{ items: { resource: { name: string }; status: string; free: { start: string; end: string }[] }[] }>('priya', baseURL, 'GET', `/sites/torino/free?type=gpu&from=${from}&to=${to}&limit=500`);
  const whole = items.find(({ free, status }) => status === 'ACTIVE' && free.some((span) => Date.parse(span.end) - Date.parse(span.start) >= milliseconds - 60_000));
  return whole!.resource.name;
}

test('what somebody else did to my booking is told live, marked, and filtered', async ({ browser, baseURL }) => {
  const title = `Told ${Date.now()}`;
  const made = await call<Booking>('priya', baseURL!, 'POST', '/sites/torino/reservations', bench(title, later(10, 9), later(10, 10)));
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto('/notifications');
  await expect(page.getByRole('heading', { name: 'Notifications' })).toBeVisible();
  await page.getByRole('button', { name: 'Mark all as read' }).click();
  await expect(page.getByRole('link', { name: 'Notifications', exact: true })).toBeVisible();
  await call('marco', baseURL!, 'POST', `/sites/torino/reservations/${made.id}/cancel`, { reason: 'power cut' });
  await expect(page.getByRole('link', { name: '1 new notification' })).toBeVisible();
  await expect(row(page, title)).toContainText('Cancelled by Marco Ferraris');
  await expect(row(page, title)).toContainText('power cut');
  await page.getByRole('radio', { name: /^Unread/ }).check({ force: true });
  await expect(page.getByRole('main').getByRole('listitem')).toHaveCount(1);
  await row(page, title).getByRole('button', { name: 'Mark as read' }).click();
  await expect(page.getByText('No notification matches.')).toBeVisible();
  await expect(page.getByRole('link', { name: 'Notifications', exact: true })).toBeVisible();
  await page.getByRole('radio', { name: 'All' }).check({ force: true });
  await row(page, title).getByRole('button', { name: 'Mark as unread' }).click();
  await expect(page.getByRole('link', { name: '1 new notification' })).toBeVisible();
  await page.getByLabel('Kind').selectOption({ label: 'Reminders' });
  await expect(row(page, title)).toHaveCount(0);
  await page.getByLabel('Kind').selectOption({ label: 'Bookings and approvals' });
  await row(page, title).getByRole('link', { name: title }).click();
  await expect(page).toHaveURL(new RegExp(made.id));
  await expect(page.getByRole('link', { name: 'Notifications', exact: true })).toBeVisible();
  await page.context().close();
});

test('room for what one waits for is offered, and one click takes it', async ({ browser, baseURL }) => {
  const title = `Offer ${Date.now()}`;
  const way = await call<Booking>('marco', baseURL!, 'POST', '/sites/torino/reservations', bench(`Way of ${title}`, later(12, 9), later(12, 10)));
  const waits = await call<Booking>('priya', baseURL!, 'POST', '/sites/torino/reservations', { ...bench(title, later(12, 9), later(12, 10)), wait: 'offer' });
  expect(waits.state).toBe('waiting');
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto('/notifications');
  await expect(page.getByRole('heading', { name: 'Notifications' })).toBeVisible();
  await call('marco', baseURL!, 'POST', `/sites/torino/reservations/${way.id}/cancel`, {});
  const told = row(page.getByRole('main') as unknown as Page, title);
  await expect(told).toContainText('There is room for what you wait for');
  await expect(told).toContainText('Kept free for you until');
  await told.getByRole('button', { name: /Take it/ }).click();
  await expect(page.getByText(`Booked: ${title}`)).toBeVisible();
  expect((await state(baseURL!, waits.id)).state).toBe('confirmed');
  await page.context().close();
});

test('before an end one is reminded, and one click makes it longer', async ({ browser, baseURL }) => {
  test.slow();
  const title = `Reminder ${Date.now()}`;
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto('/bookings');
  await expect(page.getByRole('heading', { name: 'My bookings' })).toBeVisible();
  // The reminder comes a quarter of an hour before, so one that is a little longer is reminded of at once.
  const start = Date.now() + 1_000;
  const made = await call<Booking>('priya', baseURL!, 'POST', '/sites/torino/reservations', {
    title,
    start: new Date(start).toISOString(),
    end: new Date(start + 15 * 60_000 + 4_000).toISOString(),
    resources: [{ resource: await freeGpu(baseURL!, 4 * 3_600_000) }],
  });
  await expect(page.getByText(new RegExp(`Ends .*: ${title}`))).toBeVisible({ timeout: 75_000 });
  await page.goto('/notifications?kind=reminders');
  const told = row(page, title);
  const before = (await call<Booking>('priya', baseURL!, 'GET', `/sites/torino/reservations/${made.id}`)).end;
  await told.getByRole('button', { name: /Extend by 1 h/ }).click();
  await expect(page.getByText(`Extended: ${title}`)).toBeVisible();
  const after = await call<Booking>('priya', baseURL!, 'GET', `/sites/torino/reservations/${made.id}`);
  expect(Date.parse(after.end) - Date.parse(before)).toBe(3_600_000);
  await told.getByRole('button', { name: /End now/ }).click();
  await expect(page.getByText(`Cancelled: ${title}`)).toBeVisible();
  await page.context().close();
});

test('older ones come page by page', async ({ browser, baseURL }) => {
  const all = await call<{ items: { number: number }[] }>('priya', baseURL!, 'GET', '/me/notifications?limit=500');
  expect(all.items.length).toBeGreaterThan(3);
  const page = await pageOf(browser, 'priya', baseURL!);
  // The server's own pages, only shorter: the demo tells nobody fifty things.
  await page.route('**/me/notifications?limit=50*', (route) => route.continue({ url: route.request().url().replace('limit=50', 'limit=2') }));
  await page.goto('/notifications');
  const items = page.getByRole('main').getByRole('listitem');
  await expect(items).toHaveCount(2);
  await page.getByRole('button', { name: 'Show older ones' }).click();
  await expect(items).toHaveCount(4);
  await expect(page.getByRole('main').getByRole('alert')).toHaveCount(0);
  await page.context().close();
});
