import { expect, test } from 'vitest';
import type { CalendarEntry, CalendarSummary, State } from '../../api/types';
import { itemOf, summaryItems } from './rows';

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

test('steps that follow each other are one item for each kind, as full as their most', () => {
  const part = (kind: string, claims: number, taken: number | null) => ({ kind, mine: false, claims, taken });
  const step = (hour: number, taken: number | null, is_full: boolean, parts: unknown[]) => ({ start: `2026-11-16T0${hour}:00:00Z`, taken, is_full, parts });
  const summary = {
    step_s: 3600,
    covers: 'all',
    rows: [{
      resource: entry.resource,
      steps: [
        step(1, 12, false, [part('workload', 31, 8), part('reservation', 2, 4)]),
        step(2, 16, true, [part('workload', 40, 16)]),
        step(5, 4, false, [part('workload', 1, 4), part('buffer', 1, 1)]),
      ],
    }],
  } as CalendarSummary;
  const items = summaryItems(summary, () => 16);
  const hours = (ms: number) => new Date(ms).getUTCHours();
  expect(items.map((one) => [one.kind, hours(one.start), hours(one.end), one.band?.count])).toEqual([
    ['workload', 1, 3, 40],
    ['workload', 5, 6, 1],
    ['booking', 1, 2, 2],
    ['booking', 5, 6, 1],
  ]);
  expect(items[0]!.band!.levels.map(({ share, isFull }) => [share, isFull])).toEqual([[0.5, false], [1, true]]);
  // What cannot be divided is taken whole while anything is taken.
  expect(summaryItems(summary, () => null)[0]!.band!.levels[0]!.share).toBe(1);
});
