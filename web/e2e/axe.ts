/** No barrier that a machine can find, in light and in dark. */
import AxeBuilder from '@axe-core/playwright';
import { expect, type Page } from '@playwright/test';

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Until the page has what it asked for: it says what it is, and its skeletons are gone. */
async function settled(page: Page): Promise<void> {
  await expect(page.locator('h1').first()).toBeAttached();
  // The page of components shows one for ever.
  await expect(page.locator('.skeleton')).toHaveCount(new URL(page.url()).pathname === '/design' ? 1 : 0);
}

export async function expectAccessible(page: Page, what: string): Promise<void> {
  await settled(page);
  for (const colorScheme of ['light', 'dark'] as const) {
    // A colour that is still on its way from one to the other has no contrast to speak of.
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    const { violations } = await new AxeBuilder({ page }).withTags(TAGS).analyze();
    const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(' | ')}`);
    expect(told, `${what} in ${colorScheme}`).toEqual([]);
  }
}
