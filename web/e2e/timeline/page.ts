// The component page as the tests see it: opened at one moment, with what it was called back.

import { expect, type Page } from '@playwright/test';

/** A Wednesday, 10:20 in Rome. */
export const NOW = Date.parse('2026-11-18T09:20:00Z');

export interface Call {
  name: string;
  args: any[];
}

export async function openPage(page: Page, query: string): Promise<void> {
  const failures: string[] = [];
  page.on('pageerror', (error) => failures.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') failures.push(message.text());
  });
  await page.clock.setFixedTime(NOW);
  await page.goto(`/?${query}`);
  await page.locator('[role=grid], [role=treegrid], [data-agenda]').first().waitFor();
  expect(failures).toEqual([]);
}

/** Calls by name, in order; ranges are told often and are asked for by name. */
export async function callsOf(page: Page, name: string): Promise<any[][]> {
  const calls = (await page.evaluate(() => (window as unknown as { calls: unknown[] }).calls)) as Call[];
  return calls.filter((call) => call.name === name).map((call) => call.args);
}

export function iso(time: number): string {
  return new Date(time).toISOString();
}
