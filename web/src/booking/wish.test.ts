import { expect, test } from 'vitest';
import { HOUR } from '../time/span';
import { readWish, wishOf, writeWish, type Wishing } from './wish';

const wish: Wishing = {
  what: 'A100',
  variants: [{ count: 2, length: 6 * HOUR }, { count: 1, length: 12 * HOUR }],
  earliest: null,
  before: Date.parse('2026-11-20T17:00:00Z'),
  where: 'memory_gb >= 512\n',
  amount: null,
};

test('a wish is a link that means the same again', () => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(writeWish(wish))) {
    for (const one of typeof value === 'string' ? [value] : (value ?? [])) query.append(name, one);
  }
  expect(wishOf(readWish(query))).toEqual(wishOf(wish));
});

test('the wish is whole, or not asked for', () => {
  expect(wishOf(wish)).toEqual({
    what: 'A100',
    variants: [{ count: 2, for: 'PT6H' }, { count: 1, for: 'PT12H' }],
    before: '2026-11-20T17:00:00.000Z',
    where: ['memory_gb>=512'],
  });
  expect(wishOf({ ...wish, what: ' ' })).toBeNull();
  expect(wishOf({ ...wish, variants: [{ count: 1, length: null }] })).toBeNull();
});
