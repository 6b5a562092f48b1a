import { expect, test } from 'vitest';
import type { Choice } from '../../api/types';
import { merged, momentsToAsk } from './moments';

const iso = (moments: number[]) => moments.map((moment) => new Date(moment).toISOString().slice(0, 16));

test('now, the next mornings, and Monday', () => {
  // A Wednesday evening in Rome.
  const now = Date.parse('2026-11-18T19:28:10Z');
  expect(iso(momentsToAsk(now, null, 'Europe/Rome'))).toEqual(['2026-11-18T19:30', '2026-11-19T08:00', '2026-11-20T08:00', '2026-11-23T08:00']);
});

test('nothing after the deadline is asked, and nothing twice', () => {
  const sunday = Date.parse('2026-11-15T20:00:00Z');
  expect(iso(momentsToAsk(sunday, Date.parse('2026-11-17T00:00:00Z'), 'Europe/Rome'))).toEqual(['2026-11-15T20:00', '2026-11-16T08:00']);
});

test('each choice is shown once, the earliest first', () => {
  const choice = (start: string) => ({ start, site: { id: 's' }, resources: [{ id: 'r' }] }) as Choice;
  const [a, b] = [choice('2026-11-19T08:00:00Z'), choice('2026-11-18T08:00:00Z')];
  expect(merged([[a], [b, a]])).toEqual([b, a]);
});
