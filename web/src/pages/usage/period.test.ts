import { expect, test } from 'vitest';
import { DAY, HOUR } from '../../time/span';
import { bucketOf, neighbour, periodOf, writeDay } from './period';

const ROME = 'Europe/Rome';
const now = Date.UTC(2026, 10, 18, 12);
const asked = { kind: '', at: '', from: '', to: '' };
const days = (span: { start: number; end: number }) => [writeDay(span.start, ROME), writeDay(span.end - 1, ROME)];

test('without a word it is this month, by the site’s clock', () => {
  expect(days(periodOf(asked, now, ROME).span)).toEqual(['2026-11-01', '2026-11-30']);
  expect(periodOf(asked, now, ROME).span.start).toBe(Date.UTC(2026, 9, 31, 23));
});

test('weeks begin on Monday, quarters with their month', () => {
  expect(days(periodOf({ ...asked, kind: 'week' }, now, ROME).span)).toEqual(['2026-11-16', '2026-11-22']);
  expect(days(periodOf({ ...asked, kind: 'quarter', at: '2026-05-09' }, now, ROME).span)).toEqual(['2026-04-01', '2026-06-30']);
});

test('own days count whole, the last one too, and never more than the server looks at', () => {
  expect(days(periodOf({ ...asked, kind: 'own', from: '2026-11-02', to: '2026-11-03' }, now, ROME).span)).toEqual(['2026-11-02', '2026-11-03']);
  const long = periodOf({ ...asked, kind: 'own', from: '2020-01-01', to: '2026-11-03' }, now, ROME).span;
  expect(Math.round((long.end - long.start) / DAY)).toBe(400);
  expect(days(periodOf({ ...asked, kind: 'own', from: 'x', to: '' }, now, ROME).span)).toEqual(['2026-11-01', '2026-11-30']);
});

test('the month before ends where this one begins, over a change of the clock', () => {
  const month = periodOf(asked, now, ROME);
  const before = neighbour(month, -1, ROME);
  expect(before.end).toBe(month.span.start);
  expect(before.end - before.start).toBe(31 * DAY + HOUR);
  expect(days(neighbour(periodOf({ ...asked, kind: 'own', from: '2026-11-02', to: '2026-11-03' }, now, ROME), 1, ROME))).toEqual(['2026-11-04', '2026-11-05']);
});

test('a day is cut into hours, a month into days, a quarter into weeks', () => {
  const of = (count: number) => bucketOf({ start: 0, end: count * DAY });
  expect([1, 7, 31, 92].map(of)).toEqual(['hour', 'day', 'day', 'week']);
});
