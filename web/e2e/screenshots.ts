import { test, type BrowserContextOptions } from '@playwright/test';
import { pageOf } from './people';
import { names, placeOf } from './places';

const LOOKS: Record<string, BrowserContextOptions> = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  phone: { colorScheme: 'light', viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, locale: 'it-IT' },
};

/** `ONLY=find,site npm run screenshots` for some of them. */
const only = process.env.ONLY?.split(',');

test('pictures of every page', async ({ browser, baseURL }) => {
  for (const name of names.filter((one) => !only || only.includes(one))) {
    const place = await placeOf(name, baseURL!);
    for (const [look, options] of Object.entries(LOOKS)) {
      const page = await pageOf(browser, place.who, baseURL!, options);
      await page.goto(place.path);
      await page.locator('h1').first().waitFor({ state: 'attached' });
      if (name !== 'design') await page.locator('.skeleton').first().waitFor({ state: 'detached' });
      await page.waitForTimeout(400);
      await page.screenshot({ path: `screenshots/${name}-${look}.png` });
      await page.context().close();
    }
  }
});
