import { expect, test } from 'vitest';
import type { Event as BerthEvent, EventKind } from '../api/types';
import { noticeOf, type Reader } from './notices';

const reader: Reader = { person: 'per_me', resources: new Set(['res_mine']), administers: (site) => site === 'torino' };

function event(kind: EventKind, data: unknown, site = 'torino'): BerthEvent {
  return { id: 'evt', number: 7, at: '2026-11-15T10:00:00Z', kind, subject: 'x', data, site: { id: 's', name: site, title: site } };
}

const kind = (event: BerthEvent) => noticeOf(event, reader)?.kind;

test('what happens to my bookings is told, what happens to others is not', () => {
  expect(kind(event('reservation.approved', { owner: 'per_me', title: 'x' }))).toBe('approved');
  expect(kind(event('reservation.approved', { owner: 'per_you', title: 'x' }))).toBeUndefined();
  expect(kind(event('reservation.created', { owner: 'per_me' }))).toBeUndefined();
});

test('my own cancelling is no news; a cancelling with a reason is', () => {
  expect(kind(event('reservation.cancelled', { owner: 'per_me', reason: null }))).toBeUndefined();
  expect(kind(event('reservation.cancelled', { owner: 'per_me', reason: 'the rack fails' }))).toBe('cancelled');
});

test('a resource that I booked changes its status', () => {
  const notice = noticeOf(event('resource.status', { resource: 'res_mine', name: 'gpu-01', status: 'MAINTENANCE' }), reader);
  expect(notice).toMatchObject({ kind: 'status', about: 'gpu-01', status: 'MAINTENANCE' });
  expect(kind(event('resource.status', { resource: 'res_other' }))).toBeUndefined();
});

test('administrators hear what waits for them, in their own sites', () => {
  const wanted = { owner: 'per_you', state: 'pending_approval', title: 'x' };
  expect(kind(event('reservation.created', wanted))).toBe('approval_wanted');
  expect(kind(event('reservation.created', wanted, 'napoli'))).toBeUndefined();
  expect(kind(event('join.requested', { person: 'per_you' }))).toBe('join_requested');
});

test('data that is no object breaks nothing', () => {
  expect(kind(event('project.changed', 'per_you'))).toBeUndefined();
  expect(kind(event('reservation.started', null))).toBeUndefined();
});
