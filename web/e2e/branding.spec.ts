/** A site's colour and logo. */
import AxeBuilder from '@axe-core/playwright';
import { expect, test } from '@playwright/test';
import { call, pageOf } from './people';

const LOGO = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 60 20"><rect width="60" height="20" fill="#c06000"/></svg>';

test('a colour is judged before it is set, worn by the pages, and keeps words legible', async ({ browser, baseURL }) => {
  await call('chiara', baseURL!, 'PATCH', '/sites/bologna', { accent: null });
  const page = await pageOf(browser, 'chiara', baseURL!);
  await page.goto('/sites/bologna/admin/settings');
  const field = page.getByLabel('Accent colour');
  await field.fill('#ffff00');
  await expect(page.getByText('It is hardly seen on white. Choose a darker one.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Save the colour' })).toBeDisabled();
  await field.fill('#c06000');
  await page.getByRole('button', { name: 'Save the colour' }).click();
  await expect(page.getByText('Saved.')).toBeVisible();
  const accent = () => page.evaluate(() => document.documentElement.style.getPropertyValue('--accent'));
  await expect.poll(accent).toContain('light-dark');
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const { violations } = await new AxeBuilder({ page }).withTags(['wcag2aa']).analyze();
    expect(violations.map(({ id, nodes }) => `${id} ${nodes[0]?.html}`), colorScheme).toEqual([]);
  }
  await page.getByRole('button', { name: 'Back to Berth’s own' }).click();
  await expect.poll(accent).toBe('');
  await page.context().close();
});

test('a logo is set, stands in the header, is taken away and brought back', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'chiara', baseURL!);
  await page.goto('/sites/bologna/admin/settings');
  const file = page.getByLabel('Logo', { exact: true });
  await file.setInputFiles({ name: 'logo.gif', mimeType: 'image/gif', buffer: Buffer.from('GIF89a') });
  await expect(page.getByText('This is no PNG, WebP or SVG image.')).toBeVisible();
  await file.setInputFiles({ name: 'logo.svg', mimeType: 'image/svg+xml', buffer: Buffer.from(LOGO) });
  await expect(page.getByText('The logo is set.')).toBeVisible();
  const inHeader = page.getByRole('banner').getByRole('img', { name: /Bologna/ });
  await expect(inHeader).toBeVisible();
  expect(await inHeader.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBeGreaterThan(0);
  await page.getByRole('button', { name: 'Take the logo away' }).click();
  await expect(inHeader).toHaveCount(0);
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(inHeader).toBeVisible();
  await page.goto('/all');
  await expect(inHeader).toHaveCount(0);
  await call('chiara', baseURL!, 'DELETE', '/sites/bologna/logo');
  await page.context().close();
});
