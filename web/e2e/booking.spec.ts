/** Booking, as people do it: by dragging, by keyboard, after a refusal, again and again. */
import { expect, test } from '@playwright/test';
import { board, drag } from './board';
import { call, pageOf } from './people';
import { later } from './when';

interface Booking {
  id: string;
  title: string;
  state: string;
  start: string;
  end: string;
}

const mine = (baseURL: string, title: string) =>
  call<{ items: Booking[] }>('priya', baseURL, 'GET', '/me/reservations?limit=500').then(({ items }) => items.filter((item) => item.title === title));

test('a first booking by drag, and taking it back', async ({ browser, baseURL }) => {
  const title = `By drag ${Date.now()}`;
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto(board(200));
  await expect(page.getByText('bench-gpu').first()).toBeVisible();
  await drag(page, 0.35, 0.5);
  const panel = page.getByRole('form', { name: 'New booking' });
  await expect(panel).toBeVisible();
  await expect(panel.getByText('bench-gpu').first()).toBeVisible();
  await expect(panel.getByText('Free: it is booked at once.')).toBeVisible();
  await panel.getByLabel('Title').fill(title);
  await page.keyboard.press('Enter');
  await expect(page.getByText(`Booked: ${title}`)).toBeVisible();
  await expect(page.locator('[data-item]', { hasText: title })).toBeVisible();
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect.poll(async () => (await mine(baseURL!, title))[0]?.state).toBe('cancelled');
  await page.context().close();
});

test('a booking is dragged to another time, and back by undo', async ({ browser, baseURL }) => {
  const title = `Moved ${Date.now()}`;
  const body = { title, start: later(205, 6), end: later(205, 10), resources: [{ resource: 'bench-gpu' }] };
  await call('priya', baseURL!, 'POST', '/sites/torino/reservations', body);
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto(board(205));
  const bar = page.locator('[data-item]', { hasText: title });
  const box = (await bar.boundingBox())!;
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 60, y, { steps: 5 });
  await page.mouse.move(x + 200, y, { steps: 5 });
  await page.mouse.up();
  await expect(page.getByText(`Moved: ${title}`)).toBeVisible();
  const [moved] = await mine(baseURL!, title);
  expect(Date.parse(moved!.start)).toBeGreaterThan(Date.parse(body.start));
  expect(Date.parse(moved!.end) - Date.parse(moved!.start)).toBe(4 * 3_600_000);
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect.poll(async () => Date.parse((await mine(baseURL!, title))[0]!.start)).toBe(Date.parse(body.start));
  await page.context().close();
});

test('a conflict offers alternatives, and one click takes one', async ({ browser, baseURL }) => {
  const title = `Alternative ${Date.now()}`;
  const taken = { title: `In the way ${Date.now()}`, start: later(210, 9), end: later(210, 11), resources: [{ resource: 'bench-gpu' }] };
  await call('marco', baseURL!, 'POST', '/sites/torino/reservations', taken);
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto(`/sites/torino?book=bench-gpu&start=${later(210, 10)}&end=${later(210, 12)}`);
  const panel = page.getByRole('form', { name: 'New booking' });
  await expect(panel.getByText('What you want is taken at that time')).toBeVisible();
  await expect(panel.getByText(taken.title)).toBeVisible();
  await panel.getByRole('button', { name: /another time|as good/ }).first().click();
  await expect(panel.getByText('Free: it is booked at once.')).toBeVisible();
  await panel.getByLabel('Title').fill(title);
  await panel.getByRole('button', { name: 'Book', exact: true }).click();
  await expect(page.getByText(`Booked: ${title}`)).toBeVisible();
  await page.context().close();
});

test('a series shows its dates first', async ({ browser, baseURL }) => {
  const title = `Series ${Date.now()}`;
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto(`/sites/torino?book=bench-gpu&start=${later(220, 9)}&end=${later(220, 10)}`);
  const panel = page.getByRole('form', { name: 'New booking' });
  await panel.getByLabel('Title').fill(title);
  await panel.getByText('Repeat, project, privacy').click();
  await panel.getByText('Daily').click();
  await panel.getByLabel('How often').fill('3');
  await panel.getByLabel('How often').blur();
  await expect(panel.getByText('Booked 3 times, all free.')).toBeVisible();
  await panel.getByRole('button', { name: 'Book the series' }).click();
  await expect(page.getByText(`${title}: booked 3 times`)).toBeVisible();
  expect(await mine(baseURL!, title)).toHaveLength(3);
  await page.context().close();
});

test('by keyboard alone: find, book, extend, give up', async ({ browser, baseURL }) => {
  const title = `Keys ${Date.now()}`;
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto('/bookings');
  await expect(page.getByRole('heading', { name: 'My bookings' })).toBeVisible();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('book bench-gpu');
  await expect(page.getByRole('option', { name: /Book bench-gpu/ })).toBeVisible();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/sites\//);
  const panel = page.getByRole('form', { name: 'New booking' });
  await expect(panel.getByLabel('Title')).toBeFocused();
  await page.keyboard.type(title);
  // A year ahead, where nobody is in the way.
  const day = panel.getByLabel('Start: Day');
  await day.fill(later(300, 0).slice(0, 10));
  await expect(panel.getByText('Free: it is booked at once.')).toBeVisible();
  await panel.getByLabel('Title').focus();
  await page.keyboard.press('Enter');
  await expect(page.getByText(`Booked: ${title}`)).toBeVisible();
  const [booking] = await mine(baseURL!, title);
  await page.goto(`/sites/torino/bookings/${booking!.id}`);
  await page.getByRole('button', { name: '1 h Extend' }).press('Enter');
  await expect(page.getByText(`Extended: ${title}`)).toBeVisible();
  await page.getByRole('button', { name: 'Cancel booking' }).press('Enter');
  await expect(page.getByText('Cancelled').first()).toBeVisible();
  await page.context().close();
});

test('a change by somebody else in the meantime is told, and nothing is overwritten', async ({ browser, baseURL }) => {
  const title = `Two hands ${Date.now()}`;
  const made = await call<Booking>('priya', baseURL!, 'POST', '/sites/torino/reservations', {
    title,
    start: later(230, 9),
    end: later(230, 10),
    resources: [{ resource: 'bench-gpu' }],
  });
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto(`/sites/torino/bookings/${made.id}`);
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Title').fill(`${title} (mine)`);
  // The other hand is quicker, and this page must not hear of it before it saves.
  await page.route('**/events/stream', (route) => route.abort());
  await page.route(`**/reservations/${made.id}`, async (route) => {
    if (route.request().method() === 'PATCH') {
      await call('marco', baseURL!, 'PATCH', `/sites/torino/reservations/${made.id}`, { title: `${title} (theirs)` });
    }
    await route.continue();
  });
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('Somebody else changed this in the meantime')).toBeVisible();
  await expect(page.getByRole('heading', { name: `${title} (theirs)` })).toBeVisible();
  await page.context().close();
});
