import { expect, test } from 'vitest';
import type { Notification } from '../api/types';
import { concernedBookings, FAMILIES, isAsked, toldOf } from './told';

const reservation = { id: 'rsv_1', title: 'Training' };
const told = (kind: string, data: object, more: object = { reservation }) =>
  toldOf({ number: 1, at: '2026-11-16T09:00:00Z', kind, read: false, text: '', data, ...more } as Notification);

test('the same event is told in other words to whom it concerns otherwise', () => {
  expect(told('reservation.created', { as: 'owner', version: 1 }).kind).toBe('booked_for_you');
  expect(told('reservation.created', { as: 'owner', version: 2 }).kind).toBe('room');
  expect(told('reservation.created', { as: 'approver', version: 1 }).kind).toBe('approval_wanted');
  expect(told('reservation.handed_over', { as: 'former_owner' }).kind).toBe('handed_on');
  expect(told('reservation.troubled', { fate: 'reduced', missing: 2 })).toMatchObject({ kind: 'reduced', count: 2, about: 'Training' });
});

test('a reminder names the moment that it was about, whatever became of the booking', () => {
  expect(told('reservation.reminder', { about: 'end', start: '2026-11-16T09:00:00Z', end: '2026-11-16T12:00:00Z' })).toMatchObject({ kind: 'ends', moment: '2026-11-16T12:00:00Z' });
});

test('of what cannot be seen any more nothing is said', () => {
  expect(told('reservation.cancelled', {}, { reservation: null })).toMatchObject({ kind: 'hidden', about: '' });
  expect(told('resource.status', {}, { resource: null }).kind).toBe('hidden');
});

test('what is asked of the reader, and what of theirs is concerned', () => {
  const notification = { kind: 'resource.status', data: { as: 'owner', reservations: ['rsv_1', 'rsv_2'] } } as unknown as Notification;
  expect(concernedBookings(notification)).toHaveLength(2);
  expect(isAsked(notification)).toBe(false);
});

test('no filter names more kinds than the server takes', () => {
  for (const kinds of Object.values(FAMILIES)) expect(kinds.length).toBeLessThanOrEqual(20);
});
