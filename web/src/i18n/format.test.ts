import { expect, test } from 'vitest';
import { HOUR } from '../time/span';
import { en } from './en';
import { Formats } from './format';
import { it as italian } from './it';

const english = new Formats('en-GB', 'Europe/Rome', en.timeline.units);
const italiano = new Formats('it', 'Europe/Rome', italian.timeline.units);
const start = '2026-11-16T08:00:00Z';

test('the API’s texts are read on the wall clock', () => {
  expect(english.span(start, '2026-11-16T11:00:00Z')).toBe('Mon 16 Nov 09:00 – 12:00');
  expect(italiano.span(start, '2026-11-16T11:00:00Z')).toBe('lun 16 nov 09:00 – 12:00');
  expect(english.full(start)).toBe('16 Nov 2026, 09:00');
});

test('lengths are in the language’s own units', () => {
  expect(english.length(1.5 * HOUR)).toBe('1 h 30 min');
  expect(italiano.length(26 * HOUR)).toBe('1 g 2 h');
});

test('what is near is told in the largest unit that says something', () => {
  const now = Date.parse(start);
  expect(english.relative(now + 3.5 * HOUR, now)).toBe('in 3 hours');
  expect(english.relative(now - 50 * HOUR, now)).toBe('2 days ago');
  expect(italiano.relative(now + 20_000, now)).toBe('questo minuto');
});

test('the week begins with Monday in ISO, whatever the locale', () => {
  expect(english.weekday(1, 'long')).toBe('Monday');
  expect(italiano.weekday(7)).toBe('dom');
});
