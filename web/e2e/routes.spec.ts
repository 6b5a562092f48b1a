/** Holds for every page there is: it opens, says what it is, is accessible in light and dark, and fits a phone. */
import { expect, test } from '@playwright/test';
import { expectAccessible } from './axe';
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
    await expectAccessible(page, name);
    await page.setViewportSize({ width: 360, height: 740 });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(overflow, 'pixels beyond a phone’s edge').toBeLessThanOrEqual(0);
    expect(errors).toEqual([]);
    await page.context().close();
  });
}
