/** What administrators do. */
import { expect, test } from '@playwright/test';
import { call, pageOf } from './people';
import { later } from './when';

test('an approval is asked for, seen and given', async ({ browser, baseURL }) => {
  const title = `Please ${Date.now()}`;
  await call('priya', baseURL!, 'POST', '/sites/torino/reservations', {
    title,
    start: later(260, 9),
    end: later(260, 12),
    resources: [{ resource: 'gpu-01' }],
    parameters: { 'gpu-server': { image: 'rocky-9' } },
  });
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/approvals');
  const row = page.getByRole('listitem').filter({ hasText: title });
  await row.getByRole('button', { name: 'Approve' }).click();
  await expect(page.getByText(`Approved: ${title}`)).toBeVisible();
  await expect(row).toHaveCount(0);
  await page.context().close();
});

test('maintenance is decided booking by booking', async ({ browser, baseURL }) => {
  const title = `In the way ${Date.now()}`;
  const window = `Service ${Date.now()}`;
  const start = later(270, 9);
  await call('priya', baseURL!, 'POST', '/sites/torino/reservations', { title, start, end: later(270, 12), resources: [{ resource: 'bench-gpu' }] });
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/sites/torino/admin/maintenance');
  await page.getByLabel('Title').fill(window);
  await page.getByLabel('What is serviced').fill('bench-gpu');
  await page.keyboard.press('Enter');
  await page.getByLabel('Start: Day').fill(start.slice(0, 10));
  await page.getByLabel('End: Day').fill(start.slice(0, 10));
  await page.getByRole('button', { name: 'See what is in the way' }).click();
  await expect(page.getByText('One booking is in the way. Decide about it:')).toBeVisible();
  const plan = page.getByRole('button', { name: 'Plan a window' });
  await expect(plan).toBeDisabled();
  await page.getByText('Cancel it', { exact: true }).click();
  await plan.click();
  await expect(page.getByText(`Planned: ${window}`)).toBeVisible();
  await page.getByRole('button', { name: `Cancel window ${window}` }).click();
  await expect(page.getByText(`Cancelled: ${window}`)).toBeVisible();
  await page.context().close();
});

test('a booking in the way that was booked by name is its owner’s to move, and the window goes around it', async ({ browser, baseURL }) => {
  const title = `To be moved ${Date.now()}`;
  const window = `Swap ${Date.now()}`;
  const start = later(275, 9);
  await call('priya', baseURL!, 'POST', '/sites/torino/reservations', {
    title,
    start,
    end: later(275, 12),
    resources: [{ resource: 'gpu-02.gpu0' }],
    parameters: { gpu: { image: 'pytorch-2.9' } },
  });
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/sites/torino/admin/maintenance');
  await page.getByLabel('Title').fill(window);
  await page.getByLabel('What is serviced').fill('gpu-02.gpu0');
  await page.keyboard.press('Enter');
  await page.getByLabel('Start: Day').fill(start.slice(0, 10));
  await page.getByLabel('End: Day').fill(start.slice(0, 10));
  await page.getByRole('button', { name: 'See what is in the way' }).click();
  await expect(page.getByText(/Could have .* instead\./)).toBeVisible();
  await expect(page.getByText('Only its owner may move it')).toBeVisible();
  await page.getByText('Ask to move it', { exact: true }).click();
  await page.getByRole('button', { name: 'Plan a window' }).click();
  await expect(page.getByText(`Planned: ${window}`)).toBeVisible();
  const isTold = async () => {
    const { items } = await call<{ items: { reservation?: { title: string } | null }[] }>('priya', baseURL!, 'GET', '/me/notifications?limit=20');
    return items.some(({ reservation }) => reservation?.title === title);
  };
  await expect.poll(isTold).toBe(true);
  await page.getByRole('button', { name: `Cancel window ${window}` }).click();
  await page.context().close();
});

test('a resource is dragged to another place, after its effect was shown, and back', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'marco', baseURL!);
  await page.goto('/sites/torino/admin/resources');
  const item = (name: string) => page.getByRole('treeitem').filter({ has: page.getByText(name, { exact: true }) });
  await item('bench-gpu').dragTo(item('lab'));
  const dialog = page.getByRole('dialog', { name: 'Move bench-gpu to lab' });
  await dialog.getByRole('button', { name: 'Move', exact: true }).click();
  await expect(page.getByText('bench-gpu is moved.')).toBeVisible();
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect.poll(async () => (await call<{ parent?: unknown }>('marco', baseURL!, 'GET', '/sites/torino/resources/bench-gpu')).parent ?? null).toBeNull();
  await page.context().close();
});

test('a policy shows what it would break before it is set', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'chiara', baseURL!);
  await page.goto('/sites/bologna/admin/policies');
  await page.getByRole('button', { name: 'New policy' }).click();
  await page.getByLabel('Lasts at most').fill('20d');
  await page.getByRole('button', { name: 'See the effect' }).click();
  await expect(page.getByText(/standing booking/)).toBeVisible();
  await page.getByRole('button', { name: 'Set the policy' }).click();
  await expect(page.getByText('The policy is set.')).toBeVisible();
  await page.getByRole('button', { name: /Take it away/ }).click();
  await expect(page.getByText('The policy is taken away.')).toBeVisible();
  await page.context().close();
});

test('who may not administer is told so', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto('/sites/torino/admin/members');
  await expect(page.getByText('You may not see this page')).toBeVisible();
  await page.goto('/nowhere');
  await expect(page.getByText('Nothing is here')).toBeVisible();
  await page.context().close();
});
