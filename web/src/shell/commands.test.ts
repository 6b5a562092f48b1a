import { expect, test } from 'vitest';
import { best, fit } from './commands';

test('the beginning fits better than a word, a word better than the middle, letters in order last', () => {
  const ranks = ['gpu-01', 'book gpu-01', 'xgpu', 'g-p-u', 'cpu-01'].map((name) => fit('gpu', name));
  expect(ranks).toEqual([0, 1, 2, 3, null]);
});

test('the best come first, and nothing typed keeps the order', () => {
  const names = ['b gpu', 'gpu', 'other'];
  expect(best('gpu', names, String, 5)).toEqual(['gpu', 'b gpu']);
  expect(best(' ', names, String, 2)).toEqual(['b gpu', 'gpu']);
});
