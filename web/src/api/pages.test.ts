import { expect, test } from 'vitest';
import { all } from './pages';

test('all pages are read, in order', async () => {
  const pages = [
    { items: [1, 2], next: 'a' },
    { items: [], next: 'b' },
    { items: [3], next: null },
  ];
  const asked: (string | undefined)[] = [];
  const items = await all((query) => {
    asked.push(query.cursor);
    return Promise.resolve(pages[asked.length - 1] ?? { items: [] });
  });
  expect(items).toEqual([1, 2, 3]);
  expect(asked).toEqual([undefined, 'a', 'b']);
});

test('a list without an end is cut off', async () => {
  const items = await all(() => Promise.resolve({ items: [1, 2], next: 'again' }), 5);
  expect(items).toHaveLength(6);
});
