import AxeBuilder from '@axe-core/playwright';
import { expect, test, type Page } from '@playwright/test';
import { callsOf, iso, openPage } from './page';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

async function dragMouse(page: Page, from: [number, number], to: [number, number]): Promise<void> {
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.mouse.move((from[0] + to[0]) / 2, (from[1] + to[1]) / 2, { steps: 3 });
  await page.mouse.move(...to, { steps: 3 });
}

async function middleOf(page: Page, selector: string): Promise<[number, number]> {
  const box = (await page.locator(selector).first().boundingBox())!;
  return [box.x + box.width / 2, box.y + box.height / 2];
}

const dayCell = (iso: string) => `[data-day="${Date.parse(iso)}"]`;
const SATURDAY = dayCell('2026-11-20T23:00:00Z');
const SUNDAY = dayCell('2026-11-21T23:00:00Z');

test.describe('month', () => {
  const FEW = 'view=month&rows=12&items=14';

  test('thousands show as sums per day, and a day opens', async ({ page }) => {
    await openPage(page, 'view=month&days=28');
    await expect(page.locator('[data-item]')).toHaveCount(0);
    await expect(page.getByRole('gridcell', { name: /Wednesday,? 18 November 2026 \d+ bookings \d+ yours 1 maintenance/ })).toBeVisible();
    await page.mouse.click(...(await middleOf(page, SATURDAY)));
    expect(await callsOf(page, 'openday')).toEqual([[Date.parse('2026-11-20T23:00:00Z')]]);
  });

  test('days are dragged over to book them', async ({ page }) => {
    await openPage(page, `${FEW}&resource=gpu-01-gpu0`);
    await dragMouse(page, await middleOf(page, dayCell('2026-11-24T23:00:00Z')), await middleOf(page, dayCell('2026-11-25T23:00:00Z')));
    await expect(page.getByText('Free', { exact: true })).toBeVisible();
    await page.mouse.up();
    const [[draft]] = (await callsOf(page, 'book')) as [[any]];
    expect([draft.resource, iso(draft.start), iso(draft.end)]).toEqual(['gpu-01-gpu0', '2026-11-24T23:00:00.000Z', '2026-11-26T23:00:00.000Z']);
  });

  test('one’s own booking is dragged to another day, and keeps its hour', async ({ page }) => {
    await openPage(page, FEW);
    const own = page.locator(`${SATURDAY} .item.mine`);
    const box = (await own.boundingBox())!;
    const to = await middleOf(page, dayCell('2026-11-26T23:00:00Z'));
    await dragMouse(page, [box.x + 40, box.y + 8], to);
    await page.mouse.up();
    const [[, moved]] = (await callsOf(page, 'move')) as [[string, any]];
    expect([iso(moved.start), moved.end - moved.start]).toEqual(['2026-11-27T08:00:00.000Z', 12 * HOUR]);
    expect(moved.resource).toBe('gpu-01');
  });

  test('keys alone: to a day, to an item, move it, book', async ({ page }) => {
    await openPage(page, `${FEW}&resource=gpu-01-gpu0`);
    await page.locator('[data-slot]').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    await expect(page.locator(dayCell('2026-11-25T23:00:00Z'))).toBeFocused();
    await page.keyboard.press('b');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    const [[draft]] = (await callsOf(page, 'book')) as [[any]];
    expect(draft.end - draft.start).toBe(2 * DAY);

    await page.keyboard.press('Control+ArrowLeft');
    await expect(page.locator(`${SATURDAY} .item.mine`)).toBeFocused();
    await page.keyboard.press('m');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    const [[, moved]] = (await callsOf(page, 'move')) as [[string, any]];
    expect(iso(moved.start)).toBe('2026-11-28T08:00:00.000Z');
  });
});

test.describe('week', () => {
  const FEW = 'view=week&rows=12&items=14&resource=gpu-01-gpu0';

  test('a drag down a day books, and says the exact time', async ({ page }) => {
    await openPage(page, FEW);
    const box = (await page.locator(SUNDAY).boundingBox())!;
    const at = (hour: number): [number, number] => [box.x + box.width / 2, box.y + (box.height * hour) / 24];
    await dragMouse(page, at(12.1), at(14.9));
    await expect(page.getByText('Sun 22 Nov 12:00 – 15:00')).toBeVisible();
    await page.mouse.up();
    const [[draft]] = (await callsOf(page, 'book')) as [[any]];
    expect([iso(draft.start), iso(draft.end)]).toEqual(['2026-11-22T11:00:00.000Z', '2026-11-22T14:00:00.000Z']);
  });

  test('one’s own booking moves to another day and its edge extends it', async ({ page }) => {
    await openPage(page, FEW);
    const own = page.locator(`${SATURDAY} .item.mine`);
    const box = (await own.boundingBox())!;
    const column = (await page.locator(SATURDAY).boundingBox())!;
    const hour = column.height / 24;
    await dragMouse(page, [box.x + 30, box.y + 80], [box.x + 30 + column.width, box.y + 80 + 2 * hour]);
    await page.mouse.up();
    const [[, moved]] = (await callsOf(page, 'move')) as [[string, any]];
    expect([moved.resource, iso(moved.start)]).toEqual(['gpu-01', '2026-11-22T10:00:00.000Z']);

    const there = (await page.locator(`${SUNDAY} .item.mine`).boundingBox())!;
    await page.locator(`${SUNDAY} .item.mine [data-grip=start]`).hover();
    await page.mouse.down();
    await page.mouse.move(there.x + 20, there.y + 2 - hour, { steps: 4 });
    await page.mouse.up();
    const [[, extended]] = (await callsOf(page, 'extend')) as [[string, any]];
    expect(iso(extended.start)).toBe('2026-11-22T09:00:00.000Z');
  });

  test('keys alone: walk, book, extend', async ({ page }) => {
    await openPage(page, FEW);
    await page.locator('[data-slot]').focus();
    for (let i = 0; i < 4; i++) await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('b');
    await page.keyboard.press('ArrowDown');
    await expect(page.getByRole('status')).toContainText('30 min');
    await page.keyboard.press('Enter');
    const [[draft]] = (await callsOf(page, 'book')) as [[any]];
    expect(draft.end - draft.start).toBe(HOUR / 2);
    await page.keyboard.press('Control+ArrowUp');
    await expect(page.locator(`${SATURDAY} .item.mine`)).toBeFocused();
    await page.keyboard.press('e');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    const [[, extended]] = (await callsOf(page, 'extend')) as [[string, any]];
    expect(extended.end - extended.start).toBe(12 * HOUR + HOUR / 4);
  });
});

test('the agenda lists by day, folds what is over, and opens', async ({ page }) => {
  await openPage(page, 'view=agenda&rows=40&items=60');
  await expect(page.getByRole('heading', { level: 2 }).first()).toContainText('Wed');
  const first = page.locator('[data-item]').first();
  await first.click();
  expect(await callsOf(page, 'open')).toEqual([[await first.getAttribute('data-item')]]);
});

for (const view of ['month&days=28', 'month&rows=12&items=40', 'week', 'day', 'agenda']) {
  for (const theme of ['light', 'dark']) {
    test(`axe finds nothing, ${view}, ${theme}`, async ({ page }) => {
      await openPage(page, `view=${view}&theme=${theme}`);
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(violations.map(({ id, nodes }) => [id, nodes.slice(0, 3).map((node) => node.html)])).toEqual([]);
    });
  }
}
