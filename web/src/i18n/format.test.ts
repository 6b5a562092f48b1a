import { describe, expect, test } from 'vitest';
import { HOUR } from '../time/span';
import { Formats } from './format';

const rome = new Formats('en-GB', 'Europe/Rome');
const italian = new Formats('it', 'Europe/Rome');
const start = '2026-11-16T08:00:00Z';

describe('spans', () => {
  test('within a day say the day once', () => {
    expect(rome.span(start, '2026-11-16T11:00:00Z')).toBe('Mon 16 Nov, 09:00–12:00');
    expect(italian.span(start, '2026-11-16T11:00:00Z')).toBe('lun 16 nov, 09:00–12:00');
  });

  test('until midnight are within the day', () => {
    expect(rome.span(start, '2026-11-16T23:00:00Z')).toBe('Mon 16 Nov, 09:00–00:00');
  });

  test('over midnight say both days', () => {
    expect(rome.span(start, '2026-11-17T08:00:00Z')).toBe('Mon 16 Nov, 09:00 – Tue 17 Nov, 09:00');
  });
});

test('lengths have the two units that matter', () => {
  expect(rome.length(1.5 * HOUR)).toBe('1 hr 30 min');
  expect(italian.length(26 * HOUR)).toBe('1 g 2 h');
  expect(rome.length(0)).toBe('0 min');
});

test('what is near is told in its own unit', () => {
  const now = Date.parse(start);
  expect(rome.relative(now + 3.5 * HOUR, now)).toBe('in 3 hr');
  expect(rome.relative(now - 50 * HOUR, now)).toBe('2 days ago');
  expect(italian.relative(now + 20_000, now)).toBe('questo minuto');
});

test('the week begins with Monday in ISO, whatever the locale', () => {
  expect(rome.weekday(1, 'long')).toBe('Monday');
  expect(italian.weekday(7)).toBe('dom');
});

test('the zone is named as it is at that time', () => {
  expect(rome.zoneName('2026-07-01T00:00:00Z')).toMatch(/CEST|GMT\+2/);
});
