/** At the booking desk: any of a kind, what else there is when the answer is no, waiting, and maintenance by drawing. */
import { expect, test, type Page } from '@playwright/test';
import { expectAccessible } from './axe';
import { board, drag } from './board';
import { call, pageOf } from './people';
import { later } from './when';

interface Booking {
  id: string;
  title: string;
  state: string;
  start: string;
  terms: { any?: { what: string; count?: number }; wait?: { offer_s?: number }; movable_until?: string };
  resources: unknown[];
}

const mine = (baseURL: string, title: string) =>
  call<{ items: Booking[] }>('priya', baseURL, 'GET', '/me/reservations?limit=500').then(({ items }) => items.filter((item) => item.title === title));

async function taken(baseURL: string, title: string, day: number, from = 9, to = 11) {
  await call('marco', baseURL, 'POST', '/sites/torino/reservations', { title, start: later(day, from), end: later(day, to), resources: [{ resource: 'bench-gpu' }] });
}

async function newBooking(page: Page, day: number, from: number, to: number) {
  await page.goto(`/sites/torino?book=bench-gpu&start=${later(day, from)}&end=${later(day, to)}`);
  return page.getByRole('form', { name: 'New booking' });
}

test('a refused booking keeps alternatives free, and one click takes one', async ({ browser, baseURL }) => {
  const title = `Held ${Date.now()}`;
  await taken(baseURL!, `In the way of ${title}`, 400);
  const page = await pageOf(browser, 'priya', baseURL!);
  const panel = await newBooking(page, 400, 9, 11);
  await panel.getByLabel('Title').fill(title);
  await panel.getByRole('button', { name: 'Keep these free for me' }).click();
  await expect(panel.getByText('Kept free for you until')).toBeVisible();
  expect((await mine(baseURL!, title)).filter(({ state }) => state === 'held').length).toBeGreaterThan(0);
  await expectAccessible(page, 'held alternatives');
  await panel.getByRole('button', { name: /Take it/ }).first().click();
  await expect(page.getByText(`Booked: ${title}`)).toBeVisible();
  // The others are given back at once.
  await expect.poll(async () => (await mine(baseURL!, title)).map(({ state }) => state).filter((state) => state !== 'cancelled')).toEqual(['confirmed']);
  await page.context().close();
});

test('what is held is given back when one goes away', async ({ browser, baseURL }) => {
  const title = `Gone ${Date.now()}`;
  await taken(baseURL!, `In the way of ${title}`, 402);
  const page = await pageOf(browser, 'priya', baseURL!);
  const panel = await newBooking(page, 402, 9, 11);
  await panel.getByLabel('Title').fill(title);
  await panel.getByRole('button', { name: 'Book', exact: true }).click();
  await expect(panel.getByText('Kept free for you until')).toBeVisible();
  await panel.getByRole('button', { name: 'Cancel', exact: true }).click();
  await expect.poll(async () => (await mine(baseURL!, title)).filter(({ state }) => state === 'held')).toEqual([]);
  await page.context().close();
});

test('any of a kind is found, shown and booked', async ({ browser, baseURL }) => {
  const title = `Any ${Date.now()}`;
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto(`/find?what=gpu&count=2&for=2h&in=torino&earliest=${later(404, 9)}&before=${later(404, 18)}`);
  await expect(page.getByText('Earliest', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: 'Or else…' }).click();
  await page.getByRole('group', { name: 'Or else, number 2' }).getByLabel('Or else').fill('1');
  await page.getByRole('button', { name: 'Find', exact: true }).click();
  await expect(page).toHaveURL(/or=1x2h/);
  await page.getByRole('link', { name: 'Book this' }).first().click();
  const panel = page.getByRole('form', { name: 'New booking' });
  await expect(panel.getByRole('radio', { name: 'Any of a kind' })).toBeChecked();
  await expect(panel.getByText('Free: it is booked at once.')).toBeVisible();
  await expectAccessible(page, 'any of a kind');
  await panel.getByLabel('Title').fill(title);
  await panel.getByRole('button', { name: 'Book', exact: true }).click();
  await expect(page.getByText(`Booked: ${title}`)).toBeVisible();
  const [booking] = await mine(baseURL!, title);
  expect(booking!.terms.any).toMatchObject({ what: 'gpu', count: 2 });
  expect(booking!.terms.movable_until).toBeTruthy();
  expect(booking!.resources).toHaveLength(2);
  await page.context().close();
});

test('from one by name to any of its kind, kept as found', async ({ browser, baseURL }) => {
  const title = `Pinned ${Date.now()}`;
  const page = await pageOf(browser, 'priya', baseURL!);
  const panel = await newBooking(page, 406, 9, 11);
  await panel.getByText('Any of a kind').click();
  await expect(panel.getByRole('combobox', { name: /^What/ })).toHaveValue('gpu');
  await panel.getByLabel('Title').fill(title);
  await panel.getByText('Project, privacy, exchange').click();
  await panel.getByLabel('Keep exactly what is found').check();
  await panel.getByRole('button', { name: 'Book', exact: true }).click();
  await expect(page.getByText(`Booked: ${title}`)).toBeVisible();
  const [booking] = await mine(baseURL!, title);
  expect(booking!.terms.movable_until).toBeFalsy();
  expect(Date.parse(booking!.start)).toBe(Date.parse(later(406, 9)));
  await page.context().close();
});

for (const how of ['Book it for me', 'Offer it to me'] as const) {
  test(`waiting for room: ${how}`, async ({ browser, baseURL }) => {
    const title = `Wait ${Date.now()}`;
    const day = how === 'Book it for me' ? 408 : 410;
    await taken(baseURL!, `In the way of ${title}`, day);
    const page = await pageOf(browser, 'priya', baseURL!);
    const panel = await newBooking(page, day, 9, 11);
    await panel.getByLabel('Title').fill(title);
    await panel.getByText(how, { exact: true }).click();
    await panel.getByRole('button', { name: 'Wait for it' }).click();
    await expect(page.getByText(`On the waitlist: ${title}`)).toBeVisible();
    const [booking] = await mine(baseURL!, title);
    expect(booking!.state).toBe('waiting');
    expect(booking!.terms.wait?.offer_s !== undefined).toBe(how === 'Offer it to me');
    await page.goto('/bookings?show=waiting');
    const row = page.getByRole('listitem').filter({ hasText: title });
    await expect(row).toContainText('bench-gpu');
    await expect(row).toContainText(how === 'Offer it to me' ? 'offered to you' : 'booked for you');
    await expectAccessible(page, 'what one waits for');
    await row.getByRole('button', { name: /Cancel booking/ }).click();
    await expect(row).toHaveCount(0);
    await page.context().close();
  });
}

test('what an admin draws can become maintenance', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto(board(412));
  await expect(page.getByText('bench-gpu').first()).toBeVisible();
  await drag(page, 0.35, 0.5);
  const panel = page.getByRole('form', { name: 'New booking' });
  await panel.getByLabel('Title').fill('New power supply');
  await panel.getByRole('link', { name: 'Plan maintenance instead' }).click();
  await expect(page).toHaveURL(/\/admin\/maintenance\?/);
  await expect(page.getByLabel('Title')).toHaveValue('New power supply');
  await expect(page.getByText('bench-gpu').first()).toBeVisible();
  await expect(page.getByLabel('Start: Day')).toHaveValue(later(412, 8).slice(0, 10));
  await page.getByRole('button', { name: 'See what is in the way' }).click();
  await expect(page.getByText('Nothing is in the way.')).toBeVisible();
  await page.context().close();
});
