import { expect, test } from 'vitest';
import type { Reservation } from '../api/types';
import { rightsOn } from './rights';

const start = Date.parse('2026-11-16T09:00:00Z');
const booking = (change: Partial<Reservation>): Reservation =>
  ({ state: 'confirmed', start: '2026-11-16T09:00:00Z', terms: { check_in: { until: '2026-11-16T09:15:00Z' } }, ...change }) as Reservation;

test('only its owner and admins may do anything', () => {
  expect(Object.values(rightsOn(booking({}), false, false, start))).not.toContain(true);
  expect(rightsOn(booking({}), false, true, start).canCancel).toBe(true);
});

test('checking in begins a quarter of an hour early, and only where it is asked for', () => {
  expect(rightsOn(booking({}), true, false, start - 16 * 60_000).canCheckIn).toBe(false);
  expect(rightsOn(booking({}), true, false, start - 14 * 60_000).canCheckIn).toBe(true);
  expect(rightsOn(booking({ terms: { check_in: 'not_asked' } }), true, false, start).canCheckIn).toBe(false);
});

test('what waits can be given up and not extended; what is over neither', () => {
  expect(rightsOn(booking({ state: 'waiting' }), true, false, start)).toMatchObject({ canCancel: true, canExtend: false });
  expect(rightsOn(booking({ state: 'done' }), true, false, start)).toMatchObject({ canCancel: false, canExtend: false });
  expect(rightsOn(booking({ state: 'held' }), true, false, start).canTake).toBe(true);
});
