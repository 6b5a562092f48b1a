import { expect, test } from 'vitest';
import { labelStep, most, roundUp } from './figures';

test('an axis ends at a round number', () => {
  expect([0.27, 0.5, 1, 3, 41, 123].map(roundUp)).toEqual([0.5, 0.5, 1, 5, 50, 200]);
});

test('an axis without use is still one', () => {
  expect(most([null, 0], 0.1)).toBe(0.1);
  expect(most([null, 0.4], 0.1)).toBe(0.4);
});

test('labels have room', () => {
  expect(labelStep(30, 900, 50)).toBe(2);
  expect(labelStep(7, 900, 50)).toBe(1);
  expect(labelStep(30, 0, 50)).toBe(1500);
});
