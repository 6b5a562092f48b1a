import { expect, test } from 'vitest';
import type { Reservation } from '../api/types';
import { Formats } from '../i18n/format';
import { whatOf } from './what';

const format = new Formats('en-GB', 'UTC', { day: 'd', hour: 'h', minute: 'min' });
const booking = (change: object) => ({ resources: [], terms: {}, ...change }) as unknown as Reservation;

test('what it has, else what it waits for by name, else the kind', () => {
  expect(whatOf(booking({ resources: [{ resource: { name: 'gpu-01' } }], waits_for: [{ name: 'gpu-02' }] }), format)).toBe('gpu-01');
  expect(whatOf(booking({ waits_for: [{ name: 'gpu-02' }, { name: 'gpu-03' }] }), format)).toBe('gpu-02 and gpu-03');
  const wish = { any: { what: { what: 'A100' }, variants: [{ count: 4, length_s: 7200 }, { count: 2, length_s: 14400 }] } };
  expect(whatOf(booking({ terms: { wait: { until: '', wish } } }), format)).toBe('4 × A100, 2 h / 2 × A100, 4 h');
});
