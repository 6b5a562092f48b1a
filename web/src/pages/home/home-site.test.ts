import { expect, test } from 'vitest';
import type { SiteActivity } from '../../api/types';
import { homeSite } from './home-site';

const site = (name: string, change: Partial<SiteActivity> = {}): SiteActivity => ({
  site: { id: `sit_${name}`, name, title: name },
  reservations: 0,
  workloads: 0,
  sessions: 0,
  approvals: 0,
  last_activity: '2026-11-18T08:00:00Z',
  ...change,
});

test('it is the site with something to do, not the first by name', () => {
  for (const change of [{ reservations: 1 }, { workloads: 1 }, { sessions: 1 }, { approvals: 1 }]) {
    expect(homeSite([site('bologna', { last_activity: '2026-11-18T12:00:00Z' }), site('torino', change)], null), JSON.stringify(change)).toBe('torino');
  }
});

test('of several it is the one with most to do, and of equals the one with the most recent activity', () => {
  expect(homeSite([site('a', { reservations: 1 }), site('b', { reservations: 1, workloads: 2 })], null)).toBe('b');
  expect(homeSite([site('a', { reservations: 1 }), site('b', { approvals: 1, last_activity: '2026-11-18T09:00:00Z' })], null)).toBe('b');
});

test('the site that was looked at last is kept while there is something to do', () => {
  const sites = [site('a', { reservations: 1 }), site('b', { workloads: 5 }), site('c')];
  expect(homeSite(sites, 'a')).toBe('a');
  expect(homeSite(sites, 'c')).toBe('b');
  expect(homeSite(sites, 'gone')).toBe('b');
});

test('with nothing to do anywhere it is the site looked at last, or the one with the most recent activity', () => {
  const sites = [site('a', { last_activity: null }), site('b'), site('c', { last_activity: '2026-11-18T09:00:00Z' })];
  expect(homeSite(sites, null)).toBe('c');
  expect(homeSite(sites, 'b')).toBe('b');
  expect(homeSite([], 'b')).toBeUndefined();
});
