import { expect, test } from 'vitest';
import type { Row } from '../../timeline/types';
import { firstFolds } from './first-folds';

const row = (id: string, parent: string | null) => ({ id, parent }) as Row;
const rack = (count: number) => [
  row('rack', null),
  ...Array.from({ length: count }, (_, index) => row(`s${index}`, 'rack')),
  ...Array.from({ length: count * 8 }, (_, index) => row(`g${index}`, `s${index % count}`)),
];

test('a small tree opens whole', () => {
  expect(firstFolds(rack(3))).toEqual(new Set());
});

test('a larger one opens as far as it fits', () => {
  expect(firstFolds(rack(10)).size).toBe(10);
  expect(firstFolds(rack(10)).has('rack')).toBe(false);
  expect(firstFolds(rack(50)).has('rack')).toBe(true);
});
