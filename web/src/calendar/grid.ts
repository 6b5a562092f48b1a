// Where things stand in a grid of days and hours. The hours are those of the clock: a day in which clocks change has its
// usual height, and what happens in the hour that comes twice stands in one place.

import { DAY, overlaps, type Span } from '../time/span';
import { fromLocal, toLocal } from '../time/zone';
import { inLanes } from '../timeline/lanes';
import type { Entry } from './entries';

export interface Block {
  readonly entry: Entry;
  /** From 0 at midnight to 1 at the next. */
  readonly top: number;
  readonly bottom: number;
  /** From 0 at the left edge of its day to 1 at the right. */
  readonly left: number;
  readonly right: number;
}

/** What had no room, in one block that says how many. */
export interface MoreBlock extends Omit<Block, 'entry'> {
  readonly count: number;
}

export interface DayColumn {
  readonly blocks: readonly Block[];
  readonly more: readonly MoreBlock[];
}

/** The share of its day that has passed, on the clock. */
export function shareOfDay(time: number, day: number, zone: string): number {
  const midnight = Math.floor(toLocal(day, zone) / DAY) * DAY;
  return Math.max(0, Math.min(1, (toLocal(time, zone) - midnight) / DAY));
}

export function timeAtShare(day: number, share: number, zone: string): number {
  const midnight = Math.floor(toLocal(day, zone) / DAY) * DAY;
  return fromLocal(midnight + Math.max(0, Math.min(1, share)) * DAY, zone);
}

/**
 * The entries of one day beside each other. A group that needs more than `lanesMax` lanes shows in all but the last what
 * has room there, one's own first, and counts the rest in the last.
 */
export function columnOf(entries: readonly Entry[], day: Span, zone: string, lanesMax: number): DayColumn {
  const blocks: Block[] = [];
  const more: MoreBlock[] = [];
  const top = (span: Span) => (span.start <= day.start ? 0 : shareOfDay(span.start, day.start, zone));
  const bottom = (span: Span) => (span.end >= day.end ? 1 : shareOfDay(span.end, day.start, zone));
  const add = (entry: Entry, lane: number, lanes: number) =>
    blocks.push({ entry, top: top(entry), bottom: bottom(entry), left: lane / lanes, right: (lane + 1) / lanes });

  const crowded: Entry[] = [];
  for (const { item: entry, lane, lanes } of inLanes(entries)) {
    if (lanes <= lanesMax) add(entry, lane, lanes);
    else crowded.push(entry);
  }
  const lanes: Entry[][] = Array.from({ length: lanesMax - 1 }, () => []);
  const left: Entry[] = [];
  for (const entry of [...crowded.filter(({ item }) => item.mine), ...crowded.filter(({ item }) => !item.mine)]) {
    const lane = lanes.findIndex((placed) => !placed.some((other) => overlaps(other, entry)));
    if (lane === -1) left.push(entry);
    else {
      lanes[lane]!.push(entry);
      add(entry, lane, lanesMax);
    }
  }
  left.sort((a, b) => a.start - b.start);
  for (const { span, count } of joined(left)) {
    more.push({ count, top: top(span), bottom: bottom(span), left: 1 - 1 / lanesMax, right: 1 });
  }
  return { blocks, more };
}

/** Spans that overlap, as one, with how many they were. */
function joined(spans: readonly Span[]): { span: Span; count: number }[] {
  const groups: { span: Span; count: number }[] = [];
  for (const { start, end } of spans) {
    const last = groups.at(-1);
    if (last && start < last.span.end) {
      last.span = { start: last.span.start, end: Math.max(last.span.end, end) };
      last.count += 1;
    } else groups.push({ span: { start, end }, count: 1 });
  }
  return groups;
}

/** What lasts a day or longer stands above the hours. */
export function isLong(entry: Span): boolean {
  return entry.end - entry.start >= DAY;
}

export interface LongBar {
  readonly entry: Entry;
  readonly lane: number;
  /** The first of its columns, and the one after the last. */
  readonly from: number;
  readonly to: number;
}

export function longBars(entries: readonly Entry[], days: readonly Span[]): LongBar[] {
  return inLanes(entries).map(({ item: entry, lane }) => ({
    entry,
    lane,
    from: Math.max(0, days.findIndex((day) => entry.start < day.end)),
    to: days.findLastIndex((day) => entry.end > day.start) + 1,
  }));
}
