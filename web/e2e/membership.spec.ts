/** Coming to a site and leaving it. */
import { expect, test } from '@playwright/test';
import { expectAccessible } from './axe';
import { call, pageOf } from './people';

interface Request {
  id: string;
  person: { login: string };
}

test('asking to join, being let in, and leaving again', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'olga', baseURL!);
  await page.goto('/sites');
  const card = page.getByRole('listitem').filter({ hasText: 'torino' });
  await card.getByRole('button', { name: 'Ask to join torino' }).click();
  await card.getByLabel('Why').fill('a measurement');
  await card.getByRole('button', { name: 'Send' }).click();
  await expect(card.getByText('Asked to join')).toBeVisible();
  // A reload does not forget it.
  await page.reload();
  await expect(card.getByText('Asked to join')).toBeVisible();
  const { items } = await call<{ items: Request[] }>('marco', baseURL!, 'GET', '/sites/torino/join-requests');
  const request = items.find(({ person }) => person.login === 'olga')!;
  await call('marco', baseURL!, 'POST', `/sites/torino/join-requests/${request.id}/accept`, {});
  await expect(card.getByText('Member', { exact: true })).toBeVisible();
  await page.goto('/notifications');
  await expect(page.getByRole('listitem').filter({ hasText: 'You are now a member of' }).first()).toBeVisible();
  await page.goto('/me');
  await page.getByRole('button', { name: 'Leave torino' }).click();
  const dialog = page.getByRole('dialog', { name: 'Leave torino?' });
  await expect(dialog.getByText('You hold no bookings there.')).toBeVisible();
  await expectAccessible(page, 'leaving');
  await dialog.getByRole('button', { name: 'Leave', exact: true }).click();
  await expect(page.getByText('You have left torino.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Leave torino' })).toHaveCount(0);
  await page.context().close();
});
