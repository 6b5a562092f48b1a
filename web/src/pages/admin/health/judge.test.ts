import { expect, test } from 'vitest';
import type { ControllerHealth, HealthReport } from '../../../api/types';
import { findings } from './judge';

const now = Date.UTC(2026, 10, 16, 8);
const GIB = 2 ** 30;

function report(controller: Partial<ControllerHealth>, rest: Partial<HealthReport> = {}, free = 100 * GIB): HealthReport {
  return {
    version: '0.1.0',
    now: new Date(now).toISOString(),
    started_at: new Date(now - 7_200_000).toISOString(),
    uptime_s: 7200,
    database: { engine: 'sqlite', engine_version: '3.50', size_bytes: 3e6, schema_step: 14, schema_pending: [], disk: { free_bytes: free, total_bytes: 200 * GIB } },
    controllers: [{ name: 'reservations', holder: 'this machine', pause_s: 1, last_round_s: 0.4, lag_s: 0, ...controller }],
    event_head: 7,
    sequencer_lag_s: 0,
    ...rest,
  };
}

const told = (one: HealthReport) => findings(one, now).map(({ trouble }) => trouble);

test('what is well is not told', () => {
  expect(told(report({}))).toEqual([]);
  expect(told(report({ last_round_s: null }))).toEqual([]);
});

test('a controller is judged as the command line does', () => {
  expect(told(report({ lag_s: 40 }))).toEqual(['late']);
  expect(told(report({ last_round_s: 60 }))).toEqual(['stale']);
  expect(told(report({ holder: null }))).toEqual(['never']);
  expect(told(report({ gave_up_s: 7 }))).toEqual(['stuck']);
});

test('a boundary that does not hold is told', () => {
  expect(told(report({}, { weak_boundary: 'server_user' }))).toEqual(['server_user']);
});

test('the worst comes first', () => {
  expect(told(report({ last_round_s: 60 }, { sequencer_lag_s: 11 }, GIB / 16))).toEqual(['disk_full', 'sequencer', 'stale']);
  expect(told(report({}, { now: new Date(now + 120_000).toISOString() }, GIB / 2))).toEqual(['disk_low', 'clock']);
});
