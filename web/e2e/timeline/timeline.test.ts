import AxeBuilder from '@axe-core/playwright';
import { expect, test, type Page } from '@playwright/test';
import { callsOf, iso, openPage } from './page';

const HOUR = 3_600_000;

/** A few rows: a rack, a node with eight GPUs, and room to drag. */
const SMALL = 'view=timeline&rows=40&items=60';

async function track(page: Page, row: string) {
  const box = (await page.locator(`[data-row="${row}"] [data-part="time"]`).boundingBox())!;
  const corner = (await page.locator('[role=columnheader]').first().boundingBox())!;
  return { left: corner.x + corner.width, middle: box.y + box.height / 2 };
}

/** Where a moment is on screen, from two ticks whose times are known: the week begins at the left edge. */
async function xAt(page: Page, time: string): Promise<number> {
  const { left } = await track(page, 'rack-a');
  const scroller = (await page.locator('[role=treegrid]').boundingBox())!;
  const weekStart = Date.parse('2026-11-15T23:00:00Z');
  const width = (await page.locator('[role=treegrid]').evaluate((element) => element.clientWidth)) - (left - scroller.x);
  return left + ((Date.parse(time) - weekStart) / (7 * 24 * HOUR)) * width;
}

async function dragMouse(page: Page, from: [number, number], to: [number, number]): Promise<void> {
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.mouse.move((from[0] + to[0]) / 2, (from[1] + to[1]) / 2, { steps: 3 });
  await page.mouse.move(...to, { steps: 3 });
}

test('a drag on empty time shows the exact time and the rule’s answer, and books', async ({ page }) => {
  await openPage(page, SMALL);
  const { middle } = await track(page, 'gpu-01-gpu0');
  const from = await xAt(page, '2026-11-21T21:20:00Z');
  const to = await xAt(page, '2026-11-22T06:45:00Z');
  await dragMouse(page, [from, middle], [to, middle]);
  await expect(page.getByText('Sat 21 Nov 22:00 – Sun 22 Nov 08:00')).toBeVisible();
  await expect(page.getByText('10 h', { exact: true })).toBeVisible();
  await expect(page.getByText('Free', { exact: true })).toBeVisible();
  await page.mouse.up();
  const [[draft]] = (await callsOf(page, 'book')) as [[any]];
  expect(draft.resource).toBe('gpu-01-gpu0');
  expect([iso(draft.start), iso(draft.end)]).toEqual(['2026-11-21T21:00:00.000Z', '2026-11-22T07:00:00.000Z']);
});

test('while dragging it says busy, taken above, taken below and not allowed, with why', async ({ page }) => {
  await openPage(page, SMALL);
  const at = async (row: string, from: string, to: string) => {
    const { middle } = await track(page, row);
    await dragMouse(page, [await xAt(page, from), middle], [await xAt(page, to), middle]);
    const said = await page.locator('.verdict').innerText();
    await page.keyboard.press('Escape');
    await page.mouse.up();
    return said;
  };
  expect(await at('gpu-01-gpu1', '2026-11-21T06:00:00Z', '2026-11-21T12:00:00Z')).toContain('Taken with gpu-01: Whole-node training until Sat 21 Nov 21:00');
  expect(await at('rack-a', '2026-11-21T06:00:00Z', '2026-11-21T12:00:00Z')).toContain('gpu-01, a part of it, is taken');
  expect(await at('gpu-01', '2026-11-21T03:00:00Z', '2026-11-21T12:00:00Z')).toContain('Busy: Whole-node training');
  expect(await at('rack-a', '2026-11-16T22:00:00Z', '2026-11-17T00:00:00Z')).toContain('this time is over');
  expect(await at('gpu-02-gpu1', '2026-11-22T06:00:00Z', '2026-11-22T12:00:00Z')).toContain('gpu-02-gpu1 is in maintenance');
  expect(await at('gpu-01-gpu1', '2026-11-21T21:00:00Z', '2026-11-24T12:00:00Z')).toContain('at most 2 days');
  expect(await callsOf(page, 'book')).toEqual([]);
});

test('one’s own booking moves to another row and time, and its edge extends it', async ({ page }) => {
  await openPage(page, SMALL);
  const own = page.locator('[data-row="gpu-01"] .item.mine');
  const box = (await own.boundingBox())!;
  const { middle } = await track(page, 'rack-a');
  const day = (await xAt(page, '2026-11-20T00:00:00Z')) - (await xAt(page, '2026-11-19T00:00:00Z'));
  await dragMouse(page, [box.x + 30, box.y + 8], [box.x + 30 + day, middle]);
  await page.mouse.up();
  const [[id, moved]] = (await callsOf(page, 'move')) as [[string, any]];
  expect(moved.resource).toBe('rack-a');
  expect(iso(moved.start)).toBe('2026-11-22T08:00:00.000Z');
  expect(moved.end - moved.start).toBe(12 * HOUR);

  const there = (await page.locator(`[data-row="rack-a"] [data-item="${id}"]`).boundingBox())!;
  await dragMouse(page, [there.x + there.width - 3, there.y + 8], [there.x + there.width - 3 - day / 4, there.y + 8]);
  await page.mouse.up();
  const [[, shortened]] = (await callsOf(page, 'extend')) as [[string, any]];
  expect(shortened.end - shortened.start).toBe(6 * HOUR);
  expect(iso(shortened.start)).toBe('2026-11-22T08:00:00.000Z');
});

test('others’ bookings cannot be dragged, and a click opens them', async ({ page }) => {
  await openPage(page, SMALL);
  const others = page.locator('[data-kind="booking"]:not(.mine)').first();
  const box = (await others.boundingBox())!;
  await dragMouse(page, [box.x + 5, box.y + 8], [box.x + 200, box.y + 8]);
  await expect(page.locator('.ghost')).toHaveCount(0);
  await page.mouse.up();
  expect(await callsOf(page, 'move')).toEqual([]);
  await others.click();
  expect(await callsOf(page, 'open')).toContainEqual([await others.getAttribute('data-item')]);
});

test('keys alone: walk, book, change the row, give up', async ({ page }) => {
  await openPage(page, SMALL);
  await page.keyboard.press('Tab');
  for (let i = 0; i < 10 && !(await page.evaluate(() => document.activeElement?.getAttribute('data-part'))); i++) await page.keyboard.press('Tab');
  await expect(page.locator('[data-row="rack-a"] [data-part="name"]')).toBeFocused();

  // Left folds, right unfolds, and right again leads into time, at the present.
  await page.keyboard.press('ArrowLeft');
  await expect(page.locator('[data-row="rack-a"]')).toHaveAttribute('aria-expanded', 'false');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await expect(page.locator('[data-row="gpu-01-gpu0"] [data-part="name"]')).toBeFocused();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('b');
  const live = page.getByRole('status');
  await expect(live).toContainText('New booking.');
  await expect(live).toContainText('gpu-01-gpu0, Wed 18 Nov');
  for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowDown');
  await expect(live).toContainText('gpu-01-gpu1');
  await page.keyboard.press('Escape');
  await expect(live).toContainText('Nothing has changed');
  expect(await callsOf(page, 'book')).toEqual([]);

  await page.keyboard.press('b');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  expect(await callsOf(page, 'book')).toHaveLength(1);
});

test('keys alone: move and extend one’s own booking', async ({ page }) => {
  await openPage(page, SMALL);
  await page.locator('[data-row="gpu-01"] [data-part="name"]').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Control+ArrowRight');
  const own = page.locator('[data-row="gpu-01"] .item.mine');
  await expect(own).toBeFocused();
  await expect(own).toHaveAccessibleName(/Whole-node training, yours, gpu-01, Sat 21 Nov 09:00 – 21:00, 12 h, confirmed/);
  await page.keyboard.press('m');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  const [[, moved]] = (await callsOf(page, 'move')) as [[string, any]];
  expect(moved.end - moved.start).toBe(12 * HOUR);
  expect(moved.start).toBeGreaterThan(Date.parse('2026-11-21T08:00:00Z'));

  await page.keyboard.press('e');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  const [[, extended]] = (await callsOf(page, 'extend')) as [[string, any]];
  expect(extended.end - extended.start).toBeGreaterThan(12 * HOUR);
  await page.keyboard.press('Enter');
  expect(await callsOf(page, 'open')).toHaveLength(1);
});

test('a finger scrolls at once, and books after resting', async ({ browser }) => {
  const context = await browser.newContext({ viewport: { width: 390, height: 760 }, hasTouch: true, timezoneId: 'Europe/Rome' });
  const page = await context.newPage();
  await openPage(page, SMALL);
  const { middle } = await track(page, 'gpu-01-gpu2');
  const session = await context.newCDPSession(page);
  const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', x = 0, y = 0) =>
    session.send('Input.dispatchTouchEvent', { type, touchPoints: type === 'touchEnd' ? [] : [{ x, y }] });

  await touch('touchStart', 350, middle);
  await page.clock.runFor(500).catch(() => {});
  await page.waitForTimeout(600);
  await touch('touchMove', 362, middle);
  await expect(page.locator('.ghost')).toBeVisible();
  await touch('touchEnd');
  expect(await callsOf(page, 'book')).toHaveLength(1);

  await touch('touchStart', 350, middle + 200);
  await touch('touchMove', 350, middle + 100);
  await touch('touchMove', 350, middle);
  await touch('touchEnd');
  expect(await callsOf(page, 'book')).toHaveLength(1);
  await context.close();
});

test('two fingers zoom', async ({ browser }) => {
  const context = await browser.newContext({ viewport: { width: 390, height: 760 }, hasTouch: true, timezoneId: 'Europe/Rome' });
  const page = await context.newPage();
  await openPage(page, SMALL);
  const session = await context.newCDPSession(page);
  const touch = (type: 'touchStart' | 'touchMove', apart: number) =>
    session.send('Input.dispatchTouchEvent', { type, touchPoints: [{ x: 260 - apart, y: 400 }, { x: 260 + apart, y: 400 }] });
  await touch('touchStart', 20);
  for (const apart of [30, 45, 60]) await touch('touchMove', apart);
  await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
  await expect.poll(async () => (await callsOf(page, 'range')).length).toBeGreaterThan(0);
  const [range] = (await callsOf(page, 'range')).at(-1)!;
  expect(range.end - range.start).toBeLessThan(4 * 24 * HOUR);
  expect(await callsOf(page, 'book')).toEqual([]);
  await context.close();
});

test('the focus stays on a booking that moves to another row', async ({ page }) => {
  await openPage(page, SMALL);
  await page.locator('[data-row="gpu-01"] .item.mine').focus();
  await page.keyboard.press('m');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await expect(page.locator('[data-row="rack-a"] .item.mine')).toBeFocused();
});

test('a hint says what a narrow bar cannot, and Escape hides it', async ({ page }) => {
  await openPage(page, 'view=timeline');
  await page.locator('[data-kind="maintenance"]').first().hover();
  const hint = page.locator('.hint');
  await expect(hint).toContainText('Tue 17 Nov 08:00 – Thu 19 Nov 00:00');
  await page.keyboard.press('Escape');
  await expect(hint).toHaveCount(0);
});

test('wheel with Ctrl zooms around the pointer, the scale is dragged, and the range is told', async ({ page }) => {
  await openPage(page, SMALL);
  await page.mouse.move(900, 300);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -300);
  await page.keyboard.up('Control');
  await expect.poll(async () => (await callsOf(page, 'range')).length).toBeGreaterThan(0);
  const [near] = (await callsOf(page, 'range')).at(-1)!;
  expect(near.end - near.start).toBeLessThan(5 * 24 * HOUR);

  await dragMouse(page, [900, 60], [700, 60]);
  await page.mouse.up();
  await expect.poll(async () => (await callsOf(page, 'range')).at(-1)![0].start).toBeGreaterThan(near.start);
});

test('the page’s late answer does not pull the time back from under the hand', async ({ page }) => {
  await openPage(page, SMALL);
  await page.mouse.move(900, 300);
  for (let i = 0; i < 12; i++) {
    await page.mouse.wheel(60, 0);
    await page.waitForTimeout(100);
  }
  await page.waitForTimeout(800);
  const starts = (await callsOf(page, 'range')).map(([range]) => range.start as number);
  expect(starts).toEqual([...starts].sort((a, b) => a - b));
  const scrolled = await page.locator('[role=treegrid]').evaluate((element) => element.scrollLeft);
  await page.getByRole('button', { name: 'Later' }).click();
  await expect.poll(() => page.locator('[role=treegrid]').evaluate((element) => element.scrollLeft)).not.toBe(scrolled);
});

test('two hundred rows: only those near the view are in the page, and all can be reached', async ({ page }) => {
  await openPage(page, 'view=timeline');
  expect(await page.getByRole('row').count()).toBeLessThan(45);
  await page.locator('[data-row="rack-a"] [data-part="name"]').focus();
  for (let i = 0; i < 12; i++) await page.keyboard.press('PageDown');
  const focused = page.locator('[data-part="name"]:focus');
  await expect(focused).toBeInViewport();
  await expect(page.locator('[role=row]:has([data-part="name"]:focus)')).toHaveAttribute('aria-rowindex', '201');
});

for (const theme of ['light', 'dark']) {
  test(`axe finds nothing, ${theme}`, async ({ page }) => {
    await openPage(page, `view=timeline&theme=${theme}&folded=gpu-03`);
    const { violations } = await new AxeBuilder({ page }).analyze();
    expect(violations.map(({ id, nodes }) => [id, nodes.slice(0, 3).map((node) => node.html)])).toEqual([]);
  });
}
