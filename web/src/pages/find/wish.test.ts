import { expect, test } from 'vitest';
import { readSearch, requestOf, writeSearch } from './wish';

const search = { what: 'A100', count: 2, length: '6h', earliest: null, before: Date.parse('2026-11-20T17:00:00Z'), where: 'memory_gb >= 512\n', site: 'torino' };

test('a search is a link that finds the same again', () => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(writeSearch(search))) {
    for (const one of typeof value === 'string' ? [value] : (value ?? [])) query.append(name, one);
  }
  expect(requestOf(readSearch(query))).toEqual(requestOf(search));
});

test('the question is whole, or not asked', () => {
  expect(requestOf(search)).toEqual({
    limit: 6,
    sites: ['torino'],
    wish: { what: 'A100', variants: [{ count: 2, for: 'PT6H' }], before: '2026-11-20T17:00:00.000Z', where: ['memory_gb>=512'] },
  });
  expect(requestOf({ ...search, what: ' ' })).toBeNull();
  expect(requestOf({ ...search, length: 'long' })).toBeNull();
});
