import { expect, test } from 'vitest';
import type { CalendarEntry, State } from '../../api/types';
import { itemOf } from './rows';

const viewer = { isAdmin: true, stateWords: {} as Record<State, string> };
const entry = {
  claim: 'clm_1',
  resource: { id: 'res_1', name: 'gpu-01.gpu0', type: 'gpu' },
  start: '2026-11-16T09:00:00Z',
  end: '2026-11-16T12:00:00Z',
  kind: 'workload',
  workload: 'job_1',
  title: 'training',
  mine: true,
} as CalendarEntry;

test('work of the queue leads to its page, and nobody can move it', () => {
  expect(itemOf(entry, viewer)).toMatchObject({ kind: 'workload', booking: 'job_1', title: 'training', editable: false });
});
