/** A workload's life as a picture: a row for each task, and on it what it waited for, its runs, and what is expected. */
import { HOUR, MINUTE, type Span } from '../time/span';
import { periodMs, taskCount } from './amounts';
import { isOver, type Outcome, type Run, type Workload } from './types';

export type Piece = Span & { readonly key: string } & (
    | { readonly kind: 'waited' | 'expected' }
    /** To its limit, if it goes on that long. */
    | { readonly kind: 'left' }
    | { readonly kind: 'run'; readonly run: Run; readonly end_of: Outcome | null }
  );

export interface StoryRow {
  readonly task: number;
  readonly pieces: readonly Piece[];
}

export interface Story extends Span {
  readonly rows: readonly StoryRow[];
  /** Tasks that have begun and no row, because there are too many of them. */
  readonly left_out: number;
  /** Tasks that have no row because they have not begun. */
  readonly not_begun: number;
}

/** More rows than this say less than a number does. */
const ROWS_MOST = 24;
/** A span that is too short to see is shown with some time around it. */
const SHORTEST = 10 * MINUTE;

export function storyOf(workload: Workload, now: number): Story {
  const since = Date.parse(workload.since);
  const byTask = new Map<number, Run[]>();
  for (const run of workload.runs) byTask.set(run.task, [...(byTask.get(run.task) ?? []), run]);
  if (byTask.size === 0) byTask.set(firstTask(workload), []);
  const tasks = [...byTask.keys()].sort((a, b) => a - b);
  const rows = tasks.slice(0, ROWS_MOST).map((task) => ({ task, pieces: piecesOf(workload, byTask.get(task) ?? [], since, now) }));
  const ends = rows.flatMap(({ pieces }) => pieces.map(({ end }) => end));
  const end = Math.max(since + SHORTEST, ...ends);
  const known = workload.array ? taskCount(workload.array.tasks) : tasks.length;
  return { start: since, end: end + (end - since) * 0.02, rows, left_out: tasks.length - rows.length, not_begun: Math.max(0, known - tasks.length) };
}

function piecesOf(workload: Workload, runs: readonly Run[], since: number, now: number): Piece[] {
  const pieces: Piece[] = [];
  let at = since;
  const wait = (end: number) => {
    if (end > at) pieces.push({ key: `waited ${at}`, kind: 'waited', start: at, end });
  };
  for (const run of runs.toSorted((a, b) => a.began.localeCompare(b.began))) {
    const began = Date.parse(run.began);
    wait(began);
    const ended = run.ended_at ? Date.parse(run.ended_at) : null;
    at = ended ?? Math.max(began, now);
    pieces.push({ key: `${run.task}.${run.attempt}`, kind: 'run', run, end_of: run.state === 'ended' ? run.outcome : null, start: began, end: at });
    if (ended === null) {
      const until = Date.parse(run.until);
      if (until > at) pieces.push({ key: `${run.task}.${run.attempt} left`, kind: 'left', start: at, end: until });
      return pieces;
    }
  }
  // One that ran and is not over waits for another turn; what it waits for is told of the workload as a whole.
  const lastRun = runs.find((run) => run.state === 'ended' && (run.outcome === 'preempted' || run.outcome === 'checkpointed' || run.outcome === 'node_failed'));
  const waitsOn = !isOver(workload.state) && (runs.length === 0 || lastRun !== undefined) && workload.waiting !== '';
  if (!waitsOn) return pieces;
  wait(now);
  const expected = workload.waits?.promised ?? workload.waits?.forecast;
  if (expected) {
    const start = Math.max(now, Date.parse(expected));
    pieces.push({ key: 'expected', kind: 'expected', start, end: start + Math.max(periodMs(workload.wishes[0]?.limit ?? ''), MINUTE) });
  }
  return pieces;
}

function firstTask(workload: Workload): number {
  return Number(/^\d+/.exec(workload.array?.tasks ?? '')?.[0] ?? 0);
}

/** Where a moment stands, from 0 to 100. */
export function placeOf(moment: number, story: Span): number {
  return Math.min(100, Math.max(0, ((moment - story.start) / (story.end - story.start)) * 100));
}

const STEPS = [5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 48 * HOUR, 168 * HOUR];

/** The moments that the scale names: round ones, at most `most` of them. */
export function marksOf(story: Span, offset: number, most: number): number[] {
  const length = story.end - story.start;
  const step = STEPS.find((one) => length / one <= most) ?? Math.ceil(length / most / (168 * HOUR)) * 168 * HOUR;
  const first = Math.ceil((story.start + offset) / step) * step - offset;
  const marks: number[] = [];
  for (let at = first; at <= story.end; at += step) marks.push(at);
  return marks;
}
