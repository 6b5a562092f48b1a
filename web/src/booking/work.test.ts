import { expect, test } from 'vitest';
import { canRunWork, LENDING, lendingOf, lendsOf } from './work';

test('whether idle time is lent is read and written without loss', () => {
  for (const lending of LENDING) expect(lendingOf(lendsOf(lending))).toBe(lending);
  expect(lendingOf(undefined)).toBe('site');
});

test('only what is a node or a part of one can run work', () => {
  const roles = { server: 'node', a100: 'gpu', licence: 'seats' };
  expect(canRunWork(['a100'], roles)).toBe(true);
  expect(canRunWork(['licence', 'server'], roles)).toBe(true);
  expect(canRunWork(['licence', 'room'], roles)).toBe(false);
});
