import { expect, test } from 'vitest';
import type { AuditEntry } from '../../../api/types';
import { about, matches, namesIn, type Wanted } from './search';

const entry = {
  number: 1,
  id: 'aud_1',
  at: '2026-11-16T08:00:00Z',
  actor: { kind: 'person', person: { id: 'per_1', login: 'marco', display_name: 'Marco Ferraris' } },
  action: 'reservation.cancel',
  subject: 'rsv_1',
  before: { id: 'rsv_1', title: 'Night run' },
  after: null,
  hash: '',
} as unknown as AuditEntry;
const status = { ...entry, action: 'resource.status', subject: 'res_1', before: 'ACTIVE', after: 'MAINTENANCE' } as AuditEntry;
const any: Wanted = { action: '', who: '', text: '', from: null, to: null };
const found = (wanted: Partial<Wanted>) => matches(entry, { ...any, ...wanted }, 'Marco Ferraris', new Map());

test('an action is found whole or by its noun, not by a part of a word', () => {
  expect(found({ action: 'reservation' })).toBe(true);
  expect(found({ action: 'reservation.cancel' })).toBe(true);
  expect(found({ action: 'reserv' })).toBe(false);
});

test('people are found by name and by login, subjects by what they are called', () => {
  expect(found({ who: 'marco' })).toBe(true);
  expect(found({ who: 'ferr' })).toBe(true);
  expect(found({ who: 'ines' })).toBe(false);
  expect(found({ text: 'night' })).toBe(true);
  expect(found({ text: 'rsv_1' })).toBe(true);
});

test('the end of a time does not count', () => {
  const at = Date.parse(entry.at);
  expect(found({ from: at })).toBe(true);
  expect(found({ to: at })).toBe(false);
});

test('an id is called what another entry calls it', () => {
  const names = namesIn([entry, { ...entry, subject: 'res_1', after: { id: 'res_1', name: 'gpu-01' } } as AuditEntry]);
  expect(about(status, names)).toBe('gpu-01');
  expect(about(entry, names)).toBe('Night run');
  expect(names.get('per_1')).toBe('Marco Ferraris');
});
