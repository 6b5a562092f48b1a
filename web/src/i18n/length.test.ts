import { expect, test } from 'vitest';
import { DAY, HOUR, MINUTE } from '../time/span';
import { parseLength, readPeriod, toPeriod, writeLength } from './length';

test('periods are written for the API', () => {
  expect(toPeriod(2 * HOUR)).toBe('PT2H');
  expect(toPeriod(90 * MINUTE)).toBe('PT1H30M');
  expect(toPeriod(20 * MINUTE)).toBe('PT20M');
  expect(toPeriod(3 * DAY)).toBe('PT72H');
});

test('what people write is read', () => {
  for (const [text, length] of [['90m', 90 * MINUTE], ['1.5h', 90 * MINUTE], ['1,5 h', 90 * MINUTE], ['2h 30min', 150 * MINUTE], ['2w', 14 * DAY]] as const) {
    expect(parseLength(text), text).toBe(length);
  }
  for (const text of ['', '3', 'h', '2x', '-1h', '0h']) expect(parseLength(text), text).toBeNull();
});

test('what is written can be read back', () => {
  for (const length of [5 * MINUTE, 90 * MINUTE, DAY, 26.5 * HOUR]) expect(parseLength(writeLength(length))).toBe(length);
});

test('periods are read back, too', () => {
  for (const length of [2 * HOUR, 90 * MINUTE, 20 * MINUTE]) expect(readPeriod(toPeriod(length))).toBe(length);
  expect(readPeriod('2h')).toBeNull();
});
