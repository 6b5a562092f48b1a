import { expect, test } from 'vitest';
import { differences } from './differences';

test('only what differs is told, by its path', () => {
  expect(differences({ title: 'a', span: { start: 1, end: 2 }, version: 1 }, { title: 'a', span: { start: 1, end: 3 }, version: 2 })).toEqual([
    { field: 'span.end', before: '2', after: '3' },
  ]);
});

test('what is new has no before, what is gone has no after', () => {
  expect(differences(null, { title: 'a' })).toEqual([{ field: 'title', before: '', after: 'a' }]);
  expect(differences({ title: 'a' }, undefined)).toEqual([{ field: 'title', before: 'a', after: '' }]);
});

test('what a booking takes is one line, with its amounts', () => {
  const items = [{ claim: 'clm_1', resource: 'gpu-01', take: 'exclusive' }, { claim: 'clm_2', resource: 'cpu', take: { amount: 24 } }];
  expect(differences(null, { id: 'rsv_1', items })).toEqual([{ field: 'items', before: '', after: 'gpu-01, cpu (24)' }]);
});

test('lists of words are told as a list, a plain value as one', () => {
  expect(differences({ roles: ['a'] }, { roles: ['a', 'b'] })).toEqual([{ field: 'roles', before: 'a', after: 'a, b' }]);
  expect(differences('x', 'y')).toEqual([{ field: 'value', before: 'x', after: 'y' }]);
});
