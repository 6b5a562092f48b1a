import { expect, test } from 'vitest';
import { DAY, HOUR } from '../../time/span';
import { loadedAround, readRange, usualRange, writeMoment } from './window';

const now = Date.parse('2026-11-18T10:30:00Z');

test('each view shows its usual time around a moment', () => {
  const iso = (view: Parameters<typeof usualRange>[0]) => {
    const { start, end } = usualRange(view, now, 'Europe/Rome', 'it');
    return [writeMoment(start), writeMoment(end)];
  };
  expect(iso('day')).toEqual(['2026-11-17T23:00Z', '2026-11-18T23:00Z']);
  expect(iso('week')).toEqual(['2026-11-15T23:00Z', '2026-11-22T23:00Z']);
  expect(iso('month')).toEqual(['2026-10-31T23:00Z', '2026-11-30T23:00Z']);
});

test('what is written into the address is read back, and nonsense is not', () => {
  const range = usualRange('week', now, 'Europe/Rome', 'it');
  expect(readRange(writeMoment(range.start), writeMoment(range.end))).toEqual(range);
  expect(readRange('', '')).toBeNull();
  expect(readRange('2026-01-02', '2026-01-01')).toBeNull();
  expect(readRange('1000-01-02', '2026-01-01')).toBeNull();
});

test('more than is seen is loaded, in whole days', () => {
  const loaded = loadedAround({ start: now, end: now + DAY });
  expect(loaded.start).toBeLessThanOrEqual(now - DAY / 2);
  expect(loaded.start % DAY).toBe(0);
});

test('of a few hours whole hours are loaded, so that zooming in tells more', () => {
  const loaded = loadedAround({ start: now, end: now + 4 * HOUR });
  expect(loaded.start % HOUR).toBe(0);
  expect(loaded.end - loaded.start).toBeLessThanOrEqual(10 * HOUR);
});
