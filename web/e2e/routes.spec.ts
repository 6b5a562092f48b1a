/** Holds for every page there is: it opens, says what it is, is accessible in light and dark, and fits a phone. */
import AxeBuilder from '@axe-core/playwright';
import { expect, test } from '@playwright/test';
import { pageOf, watchConsole } from './people';
import { names, placeOf } from './places';

/** Until the page has what it asked for: skeletons are gone, and the network rests but for the live stream. */
async function settled(page: import('@playwright/test').Page) {
  await expect(page.locator('h1').first()).toBeAttached();
  // The page of components shows one for ever.
  await expect(page.locator('.skeleton')).toHaveCount(new URL(page.url()).pathname === '/design' ? 1 : 0);
}

for (const name of names) {
  test(`${name} is whole`, async ({ browser, baseURL }) => {
    const place = await placeOf(name, baseURL!);
    const page = await pageOf(browser, place.who, baseURL!);
    const errors = watchConsole(page);
    await page.goto(place.path);
    await settled(page);
    await expect(page).toHaveTitle(/· Berth$/);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const { violations } = await new AxeBuilder({ page }).withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']).analyze();
      const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(' | ')}`);
      expect(told, `${name} in ${colorScheme}`).toEqual([]);
    }
    await page.setViewportSize({ width: 360, height: 740 });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(overflow, 'pixels beyond a phone’s edge').toBeLessThanOrEqual(0);
    expect(errors).toEqual([]);
    await page.context().close();
  });
}
