/** Signing in, languages, a phone. */
import { expect, test } from '@playwright/test';
import { pageOf } from './people';

test('a wrong password is explained, a right one leads where one wanted to go', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, null, baseURL!);
  await page.goto('/bookings');
  await expect(page).toHaveURL(/\/sign-in\?next=/);
  await page.getByLabel('Login name').fill('nadia');
  await page.getByLabel('Password').fill('not the password');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('alert')).toContainText('Wrong login or password');
  await page.getByLabel('Password').fill('demo-berth-2026');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/bookings$/);
  await page.getByRole('button', { name: /Nadia/ }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByRole('heading', { name: 'Sign in to Berth' })).toBeVisible();
  await page.context().close();
});

test('the pages speak Italian to whoever does, and the language can be changed', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'priya', baseURL!, { locale: 'it-IT' });
  await page.goto('/bookings');
  await expect(page.getByRole('heading', { name: 'Le mie prenotazioni' })).toBeVisible();
  await expect(page.locator('html')).toHaveAttribute('lang', 'it');
  await page.getByRole('button', { name: /Priya/ }).click();
  await page.getByLabel('Lingua').selectOption('en');
  await expect(page.getByRole('heading', { name: 'My bookings' })).toBeVisible();
  await page.context().close();
});

test('a phone shows the agenda, and finds and books with the thumb', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'priya', baseURL!, { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  await page.goto('/sites/torino');
  await expect(page.getByRole('radio', { name: 'Agenda' })).toBeChecked();
  await page.getByRole('link', { name: 'Find', exact: true }).tap();
  await page.getByLabel('What').first().fill('gpu');
  await page.getByRole('button', { name: 'Find', exact: true }).tap();
  await page.getByRole('link', { name: 'Book this' }).first().tap();
  await expect(page.getByRole('form', { name: 'New booking' })).toBeVisible();
  await page.context().close();
});
