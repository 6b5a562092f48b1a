/** A series: found in one's list, changed and given up in parts. */
import { expect, test } from '@playwright/test';
import { expectAccessible } from './axe';
import { call, pageOf } from './people';
import { later } from './when';

interface Series {
  id: string;
  instances: { reservation: string; start: string; state: string; differs: boolean }[];
}

const made = (baseURL: string, title: string, day: number) =>
  call<Series>('priya', baseURL, 'POST', '/sites/torino/series', {
    title,
    start: later(day, 9),
    end: later(day, 10),
    resources: [{ resource: 'bench-gpu' }],
    rule: 'FREQ=DAILY;COUNT=4',
  });
const read = (baseURL: string, id: string) => call<Series>('priya', baseURL, 'GET', `/sites/torino/series/${id}`);

test('one that differs is marked, and a change of what follows makes a series of its own', async ({ browser, baseURL }) => {
  const title = `Series ${Date.now()}`;
  const series = await made(baseURL!, title, 500);
  await call('priya', baseURL!, 'PATCH', `/sites/torino/reservations/${series.instances[0]!.reservation}`, { title: `${title} alone` });
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto('/bookings?show=series');
  await expectAccessible(page, 'the list of series');
  await page.getByRole('link', { name: title, exact: true }).click();
  const instances = page.getByRole('main').getByRole('listitem');
  await expect(instances).toHaveCount(4);
  await expect(instances.first()).toContainText('differs');
  await instances.nth(2).getByRole('button', { name: /^Change .* and those after it/ }).click();
  const form = page.getByRole('form', { name: 'Change the series' });
  await expect(form.getByRole('radio', { name: 'This one and those after it' })).toBeChecked();
  await expectAccessible(page, 'changing a series');
  await expect(form.getByText('bench-gpu').first()).toBeVisible();
  await form.getByLabel('Length').fill('2h');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('What follows is a series of its own now.')).toBeVisible();
  await expect(instances).toHaveCount(2);
  expect((await read(baseURL!, series.id)).instances).toHaveLength(2);
  await page.context().close();
});

test('only one is given up, then all the others', async ({ browser, baseURL }) => {
  const title = `Parts ${Date.now()}`;
  const series = await made(baseURL!, title, 520);
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto(`/sites/torino/series/${series.id}`);
  const instances = page.getByRole('main').getByRole('listitem');
  await instances.nth(1).getByRole('button', { name: /^Cancel/ }).click();
  const form = page.getByRole('form', { name: 'Cancel the series, or a part of it' });
  await expect(form.getByRole('radio', { name: 'Only this one' })).toBeChecked();
  await form.getByRole('button', { name: 'Cancel booking', exact: true }).click();
  await expect(instances.nth(1)).toContainText('Cancelled');
  expect((await read(baseURL!, series.id)).instances.filter(({ state }) => state === 'cancelled')).toHaveLength(1);
  await page.getByRole('button', { name: 'Cancel the series' }).click();
  await form.getByRole('button', { name: 'Cancel booking', exact: true }).click();
  await expect(page.getByText('Nothing of it is still to come.')).toBeVisible();
  expect((await read(baseURL!, series.id)).instances.every(({ state }) => state === 'cancelled')).toBe(true);
  await page.context().close();
});

test('a booking of a series leads to the change of what follows it', async ({ browser, baseURL }) => {
  const title = `Lead ${Date.now()}`;
  const series = await made(baseURL!, title, 540);
  const page = await pageOf(browser, 'priya', baseURL!);
  await page.goto(`/sites/torino/bookings/${series.instances[1]!.reservation}`);
  await page.getByRole('link', { name: 'Change the series' }).click();
  const form = page.getByRole('form', { name: 'Change the series' });
  await form.getByText('All that are still to come').click();
  await form.getByLabel('Start').fill('11:30');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText(`Changed: ${title}`)).toBeVisible();
  const starts = (await read(baseURL!, series.id)).instances.map(({ start }) => start.slice(14, 16));
  expect(new Set(starts)).toEqual(new Set(['30']));
  await page.context().close();
});
