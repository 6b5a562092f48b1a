import { expect, test } from 'vitest';
import type { Reservation } from '../api/types';
import { dueReminders } from './reminders';

const now = Date.parse('2026-11-16T09:00:00Z');
const booking = (change: Partial<Reservation>) =>
  ({ id: 'rsv', state: 'confirmed', start: '2026-11-16T09:10:00Z', end: '2026-11-16T12:00:00Z', ...change }) as Reservation;
const kinds = (bookings: Reservation[], told = new Set<string>()) => dueReminders(bookings, now, told).map(({ kind }) => kind);

test('a quarter of an hour before the start and before the end', () => {
  expect(kinds([booking({})])).toEqual(['starts']);
  expect(kinds([booking({ state: 'active', start: '2026-11-16T07:00:00Z', end: '2026-11-16T09:15:00Z' })])).toEqual(['ends']);
});

test('not earlier, not later, and not of what is not going to be', () => {
  expect(kinds([booking({ start: '2026-11-16T09:16:00Z' }), booking({ start: '2026-11-16T08:59:00Z' }), booking({ state: 'cancelled' })])).toEqual([]);
});

test('once for each time; a booking that was extended is reminded of again', () => {
  const told = new Set(['rsv 2026-11-16T09:10:00Z']);
  expect(kinds([booking({})], told)).toEqual([]);
  expect(kinds([booking({ start: '2026-11-16T09:12:00Z' })], told)).toEqual(['starts']);
});
