/** How far a session has come on its way from the queue to its first answer, and how long each step took. */
import type { Session, SessionStart } from './types';

export const STEPS = ['queue', 'place', 'starts', 'ready'] as const;
export type StepName = (typeof STEPS)[number];
export type StepState = 'done' | 'now' | 'ahead' | 'failed';

export interface Step {
  readonly name: StepName;
  readonly state: StepState;
  /** How long it took, or takes already; null where that is not known, or nothing is to be measured. */
  readonly tookMs: number | null;
  /** When it was reached, where that is a moment. */
  readonly at: number | null;
}

/** After so many failures in a row nothing is tried again by itself. */
export const TRIES_MAX = 5;

/**
 * `began` is when its newest start got a place, if it did. What was stopped, or failed after it had answered, is on no way
 * any more, and has no steps.
 */
export function stepsOf(session: Session, began: number | null, now: number): Step[] {
  const newest = session.starts?.[0];
  const asked = Date.parse(newest?.asked_at ?? session.since);
  const ready = newest?.ready_at ? Date.parse(newest.ready_at) : null;
  const reached = reachedBy(session, began, ready);
  if (reached === null) return [];
  const hasFailed = session.state === 'failed';
  const end = hasFailed ? Date.parse(newest?.ended_at ?? session.since) : now;
  const placed = began ?? (session.state === 'starting' ? Date.parse(session.since) : null);
  const took: Record<StepName, number | null> = {
    queue: (placed ?? (reached === 'queue' ? end : null)) === null ? null : (placed ?? end) - asked,
    place: null,
    starts: placed === null ? null : (ready ?? end) - placed,
    ready: null,
  };
  const moment: Record<StepName, number | null> = { queue: null, place: placed, starts: null, ready };
  return STEPS.map((name, index) => {
    const state = stateAt(index, STEPS.indexOf(reached), hasFailed);
    const isMeasured = state !== 'ahead' && took[name] !== null;
    return { name, state, tookMs: isMeasured ? Math.max(0, took[name] ?? 0) : null, at: state === 'ahead' ? null : moment[name] };
  });
}

function reachedBy({ state }: Session, began: number | null, ready: number | null): StepName | null {
  switch (state) {
    case 'waiting':
      return began === null ? 'queue' : 'place';
    case 'starting':
      return 'starts';
    case 'ready':
      return 'ready';
    case 'failed':
      return ready !== null ? null : began === null ? 'queue' : 'starts';
    case 'stopping':
    case 'stopped':
      return null;
  }
}

function stateAt(index: number, reached: number, hasFailed: boolean): StepState {
  if (index < reached) return 'done';
  if (index > reached) return 'ahead';
  if (hasFailed) return 'failed';
  return STEPS[index] === 'ready' ? 'done' : 'now';
}

/** The how manieth try in a row the newest start is. */
export function attemptOf(starts: readonly SessionStart[]): number {
  const before = starts.slice(1);
  const good = before.findIndex(({ has_failed }) => !has_failed);
  return 1 + (good < 0 ? before.length : good);
}

/** How many failed in a row, the newest first. */
export function failuresInARow(starts: readonly SessionStart[]): number {
  const good = starts.findIndex(({ has_failed }) => !has_failed);
  return good < 0 ? starts.length : good;
}
