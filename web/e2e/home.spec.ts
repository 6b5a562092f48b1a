/** `/` leads to a site where the person has something to do. */
import { expect, test } from '@playwright/test';
import { call, pageOf } from './people';

interface MySite {
  readonly site: { readonly name: string };
  readonly reservations: number;
  readonly workloads: number;
  readonly sessions: number;
  readonly approvals: number;
}

for (const who of ['priya', 'marco', 'ines'] as const) {
  test(`${who} opens Berth and sees a site with something to do`, async ({ browser, baseURL }) => {
    const { items } = await call<{ items: MySite[] }>(who, baseURL!, 'GET', '/me/sites');
    const busy = items.filter((one) => one.reservations + one.workloads + one.sessions + one.approvals > 0).map(({ site }) => site.name);
    expect(busy.length, 'the demo has something for everybody').toBeGreaterThan(0);
    const page = await pageOf(browser, who, baseURL!);
    await page.goto('/');
    await expect(page).toHaveURL(/\/sites\/[a-z-]+/);
    expect(busy).toContain(new URL(page.url()).pathname.split('/')[2]);
    await page.context().close();
  });
}

test('who belongs to no site sees one that shows its timeline', async ({ browser, baseURL }) => {
  const page = await pageOf(browser, 'olga', baseURL!);
  await page.goto('/');
  await expect(page).toHaveURL(/\/sites\/torino/);
  await page.context().close();
});

test('the status line, the queue page and the submit page count the same GPUs', async ({ browser, baseURL }) => {
  type Count = { role?: string; in_node: boolean; resources: { total: number; cut: number } };
  const { items } = await call<{ items: Count[] }>('priya', baseURL!, 'GET', '/sites/torino/resource-counts');
  const gpus = items.filter(({ role }) => role === 'gpu');
  const sum = (of: readonly Count[], part: 'total' | 'cut') => of.reduce((all, { resources }) => all + resources[part], 0);
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto('/sites/torino/queue');
  const line = page.getByRole('region', { name: 'How it is now' });
  await expect(line).toContainText('Idle now:');
  await expect(line).toContainText(`/${sum(gpus, 'total')} GPU`);
  const strip = page.getByRole('region', { name: 'Machines now' });
  const inNodes = gpus.filter(({ in_node }) => in_node);
  await expect(strip).toContainText(`GPUs in nodes ${sum(inNodes, 'total')}`);
  await expect(strip).toContainText(`${sum(inNodes, 'cut')} cut into slices`);
  await expect(strip).toContainText(/[1-9]\d* wait, [1-9]\d* run/);
  await page.context().close();
});
