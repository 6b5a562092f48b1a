import { expect, test } from 'vitest';
import type { Policy, PolicyScope, PolicyVersion } from '../api/types';
import { DAY, HOUR } from '../time/span';
import { breachOf, limitsFor } from './limits';

const version = (scope: PolicyScope, policy: Partial<Policy>): PolicyVersion => ({
  scope,
  policy: policy as Policy,
  set_at: '2026-01-01T00:00:00Z',
  version: 1,
});
const part = (type: string | null, role: 'member' | null = null) => ({ site: { type, role, project: null } });

test('the tightest of the policies that concern the booking holds', () => {
  const policies = [
    version('ceilings', { length_max: '14d' }),
    version(part(null), { length_max: '3d', notice: '1h' }),
    version(part('gpu'), { length_max: '12h' }),
    version(part('room'), { length_max: '1h' }),
    version(part(null, 'member'), { horizon: '2w' }),
  ];
  expect(limitsFor(policies, 'gpu', 'member')).toMatchObject({ longest: 12 * HOUR, notice: HOUR, horizon: 14 * DAY });
  expect(limitsFor(policies, 'gpu', 'site_admin').horizon).toBeNull();
});

test('defaults speak only where the site is silent, ceilings always', () => {
  const defaults = version('defaults', { length_max: '1h', notice: '2h' });
  expect(limitsFor([defaults, version(part(null), { length_max: '3h' })], 'x', null)).toMatchObject({
    longest: 3 * HOUR,
    notice: 2 * HOUR,
  });
  expect(limitsFor([version('ceilings', { length_max: '2h' }), version(part(null), { length_max: '3h' })], 'x', null).longest).toBe(2 * HOUR);
});

test('a span that breaks a limit is told which', () => {
  const limits = { longest: 2 * HOUR, shortest: HOUR, notice: HOUR, horizon: DAY, startStep: null };
  const at = (start: number, length: number) => breachOf(limits, { start, end: start + length }, 0)?.kind;
  expect(at(2 * HOUR, 3 * HOUR)).toBe('longest');
  expect(at(2 * HOUR, HOUR / 2)).toBe('shortest');
  expect(at(HOUR / 2, HOUR)).toBe('notice');
  expect(at(2 * DAY, HOUR)).toBe('horizon');
  expect(at(2 * HOUR, HOUR)).toBeUndefined();
});
