/** Holds for every page there is: it opens, says what it is, is accessible in light and dark, and fits a phone. */
import { expect, test } from '@playwright/test';
import { expectAccessible } from './axe';
import { pageOf, watchConsole } from './people';
import { names, placeOf } from './places';

for (const name of names) {
  test(`${name} is whole`, async ({ browser, baseURL }) => {
    const place = await placeOf(name, baseURL!);
    const page = await pageOf(browser, place.who, baseURL!);
    const errors = watchConsole(page);
    await page.goto(place.path);
    await expectAccessible(page, name);
    await expect(page).toHaveTitle(/· Berth$/);
    await page.setViewportSize({ width: 360, height: 740 });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(overflow, 'pixels beyond a phone’s edge').toBeLessThanOrEqual(0);
    expect(errors).toEqual([]);
    await page.context().close();
  });
}
