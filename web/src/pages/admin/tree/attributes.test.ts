import { expect, test } from 'vitest';
import { readAttributes, writeAttributes } from './attributes';

test('what is written is read back', () => {
  const attributes = { gpu_model: 'A100', gpus: 8, nvlink: true, note: 'a = b' };
  expect(readAttributes(writeAttributes(attributes))).toEqual({ attributes });
});

test('a line that is none is named', () => {
  expect(readAttributes('gpus = 8\nwhat')).toEqual({ wrong: 'what' });
  expect(readAttributes('Big = 1')).toEqual({ wrong: 'Big = 1' });
});
