/** Runs that share a lane of the timeline, and a calendar with too much to list. */
import { expect, test, type Page } from '@playwright/test';
import { expectAccessible } from './axe';
import { call, pageOf, watchConsole } from './people';

interface Entry {
  readonly resource: { readonly name: string };
  readonly start: string;
  readonly end: string;
  readonly kind: string;
}

const HOUR_MS = 3_600_000;

/** A resource on which at least two runs stand at this moment; some of the demo's queue always do. */
async function sharedByRuns(baseURL: string): Promise<{ name: string; runs: number }> {
  const counts = new Map<string, number>();
  await expect
    .poll(async () => {
      counts.clear();
      const now = new Date().toISOString();
      const to = new Date(Date.now() + 1_000).toISOString();
      const { items } = await call<{ items: Entry[] }>('priya', baseURL, 'GET', `/sites/torino/calendar?from=${now}&to=${to}`);
      for (const { kind, resource } of items) if (kind === 'workload') counts.set(resource.name, (counts.get(resource.name) ?? 0) + 1);
      return Math.max(0, ...counts.values());
    }, { message: 'two runs share a resource', timeout: 60_000 })
    .toBeGreaterThan(1);
  const [name, runs] = [...counts].sort((a, b) => b[1] - a[1])[0]!;
  return { name, runs };
}

/** The timeline of the hours around now, with the row and what is above it. */
async function timelineOf(page: Page, row: string): Promise<void> {
  const at = (ms: number) => `${new Date(Date.now() + ms).toISOString().slice(0, 16)}Z`;
  await page.goto(`/sites/torino?view=timeline&q=${row}&from=${at(-4 * HOUR_MS)}&to=${at(8 * HOUR_MS)}`);
}

test('the runs of a node share a lane, and lead to its part of the queue', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'priya', baseURL!);
  const errors = watchConsole(page);
  const { name } = await sharedByRuns(baseURL!);
  const node = name.slice(0, name.indexOf('.'));
  await timelineOf(page, node);
  // The rows below a node begin with its name, too, and come after it.
  const rowOf = (of: string) => page.getByRole('row').filter({ has: page.getByText(of, { exact: true }) }).first();
  await expect(rowOf(node)).toBeVisible();
  if ((await rowOf(node).getAttribute('aria-expanded')) === 'false') await rowOf(node).locator('[data-fold]').click();
  for (const of of [node, name]) {
    const band = rowOf(of).getByRole('button', { name: /^\d+ runs, at most at once, up to \d+ % taken/ }).last();
    await expect(band).toBeVisible();
    // All of the row's work stands at one height.
    const tops = await rowOf(of).locator('[data-kind="workload"]').evaluateAll((bars) => [...new Set(bars.map((bar) => (bar as HTMLElement).style.top))]);
    expect(tops, of).toHaveLength(1);
  }
  await expectAccessible(page, 'the timeline with a band');
  await rowOf(node).getByRole('button', { name: /^\d+ runs/ }).last().focus();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(`/sites/torino/queue?show=running&q=${node}`);
  await expect(page.getByRole('table')).toContainText(node);
  expect(errors).toEqual([]);
  await page.context().close();
});

for (const [language, locale, said, runs] of [
  ['English', 'en-GB', /^Everything is summed by .+: too many to draw one by one\. Zoom in to see each\.$/, /^\d+ runs?, at most in .+, up to \d+ % taken/],
  ['Italian', 'it-IT', /^Tutto è sommato per intervalli di .+/, /^\d+ esecuzion[ei], al massimo in .+, fino al \d+ % in uso/],
] as const) {
  test(`a calendar with too much to list says how much is taken, in ${language}`, async ({ browser, baseURL }) => {
    const page = await pageOf(browser, 'priya', baseURL!, { locale });
    const errors = watchConsole(page);
    // As if the site had more claims than are listed.
    await page.route('**/api/v1/sites/torino/calendar?*', (route) => route.continue({ url: `${route.request().url()}&max_entries=0` }));
    const { name } = await sharedByRuns(baseURL!);
    await timelineOf(page, name.slice(0, name.indexOf('.')));
    await expect(page.getByText(said)).toBeVisible();
    await expect(page.getByRole('button', { name: runs }).first()).toBeAttached();
    await expectAccessible(page, 'a timeline of sums');
    for (const view of ['month', 'agenda']) {
      await page.goto(`/sites/torino?view=${view}`);
      await expect(page.getByText(said)).toBeVisible();
    }
    expect(errors).toEqual([]);
    await page.context().close();
  });
}
