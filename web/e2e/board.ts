/** The timeline of the demo's test bench, and drawing on it. */
import type { Page } from '@playwright/test';
import { later } from './when';

export const board = (days: number) => `/sites/torino?q=bench-gpu&from=${later(days, 0)}&to=${later(days + 1, 0)}`;

/** Presses on the row's empty time and lets go further right. */
export async function drag(page: Page, from: number, to: number) {
  const time = page.locator('[role="row"]', { hasText: 'bench-gpu' }).locator('[data-part="time"]');
  const box = (await time.boundingBox())!;
  const visible = { left: Math.max(box.x, 320), right: Math.min(box.x + box.width, 1340) };
  const at = (share: number) => visible.left + (visible.right - visible.left) * share;
  const y = box.y + box.height / 2;
  await page.mouse.move(at(from), y);
  await page.mouse.down();
  await page.mouse.move(at((from + to) / 2), y, { steps: 5 });
  await page.mouse.move(at(to), y, { steps: 5 });
  await page.mouse.up();
}
