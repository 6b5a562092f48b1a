import { expect, test } from 'vitest';
import type { Resource } from '../../api/types';
import type { Item, Row } from '../../timeline/types';
import { attributeChoices, rowTest, takenAt } from './filter';

const row = (id: string, parent: string | null = null, capacity: number | null = null) =>
  ({ id, parent, name: id, title: null, typeTitle: 'GPU', capacity: capacity ? { amount: capacity, unit: 'cores' } : null }) as Row;
const item = (resource: string, amount: number | null = null) => ({ resource, amount, start: 0, end: 10, kind: 'booking' }) as Item;
const resource = (id: string, attributes = {}) =>
  ({ id, attributes, type: { name: 'gpu' }, effective_status: 'ACTIVE' }) as unknown as Resource;

const rows = [row('rack'), row('a', 'rack'), row('a0', 'a'), row('a1', 'a'), row('cpu', 'a', 4), row('b', 'rack')];

test('a claim takes what is above and below it, and not what is beside it', () => {
  expect(takenAt(5, rows, [item('a0')])).toEqual(new Set(['a0', 'a', 'rack']));
  expect(takenAt(5, rows, [item('a')])).toEqual(new Set(['a', 'a0', 'a1', 'cpu', 'rack']));
  expect(takenAt(10, rows, [item('a')])).toEqual(new Set());
});

test('what is divisible is taken when all of it is', () => {
  expect(takenAt(5, rows, [item('cpu', 3)]).has('cpu')).toBe(false);
  expect(takenAt(5, rows, [item('cpu', 3), item('cpu', 1)]).has('cpu')).toBe(true);
});

const none = { text: '', type: '', attribute: '', status: '', freeNow: false };
const resources = new Map([['a', resource('a', { gpu_model: 'A100' })], ['b', resource('b', { gpu_model: 'L40S' })]]);

test('without a filter there is no test', () => {
  expect(rowTest(none, resources, new Set())).toBeNull();
});

test('filters hold together', () => {
  const shown = (change: object, taken = new Set<string>()) => rows.filter(rowTest({ ...none, ...change }, resources, taken)!).map(({ id }) => id);
  expect(shown({ attribute: 'gpu_model=A100' })).toEqual(['a']);
  expect(shown({ type: 'gpu' })).toEqual(['a', 'b']);
  expect(shown({ text: 'B' })).toEqual(['b']);
  expect(shown({ freeNow: true }, new Set(['a']))).toEqual(['b']);
});

test('attributes with few values can be chosen', () => {
  expect(attributeChoices([...resources.values()])).toEqual(['gpu_model=A100', 'gpu_model=L40S']);
});
