import { expect, test } from 'vitest';
import { toRule } from './repeat';

test('a choice becomes a rule', () => {
  expect(toRule({ every: 'week', interval: 1, days: [3, 1], end: { count: 10 } })).toBe('FREQ=WEEKLY;BYDAY=MO,WE;COUNT=10');
  expect(toRule({ every: 'day', interval: 2, days: [1], end: { until: '2026-12-24' } })).toBe(
    'FREQ=DAILY;INTERVAL=2;UNTIL=20261224',
  );
  expect(toRule({ every: 'month', interval: 1, days: [], end: { count: 6 } })).toBe('FREQ=MONTHLY;COUNT=6');
});
