// Where things stand in a grid of days and hours. The hours are those of the clock: a day in which clocks change has its
// usual height, and what happens in the hour that comes twice stands in one place.

import { DAY, type Span } from '../time/span';
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

/** The entries of one day beside each other, at most `lanesMax` of them; of a fuller group the last lane counts the rest. */
export function columnOf(entries: readonly Entry[], day: Span, zone: string, lanesMax: number): DayColumn {
  const blocks: Block[] = [];
  const more: { count: number; top: number; bottom: number; left: number; right: number }[] = [];
  const ends: number[] = [];
  for (const { item: entry, lane, lanes } of inLanes(entries)) {
    const top = entry.start <= day.start ? 0 : shareOfDay(entry.start, day.start, zone);
    const bottom = entry.end >= day.end ? 1 : shareOfDay(entry.end, day.start, zone);
    const isCrowded = lanes > lanesMax;
    const shown = Math.min(lanes, lanesMax);
    const fits = !isCrowded || lane < lanesMax - 1;
    if (fits) {
      blocks.push({ entry, top, bottom, left: lane / shown, right: (lane + 1) / shown });
      continue;
    }
    // The rest of one group is one block: it grows while what has no room overlaps.
    const last = more.at(-1);
    if (last && entry.start < (ends.at(-1) ?? 0)) {
      last.count += 1;
      last.bottom = Math.max(last.bottom, bottom);
      ends[ends.length - 1] = Math.max(ends.at(-1)!, entry.end);
    } else {
      more.push({ count: 1, top, bottom, left: (shown - 1) / shown, right: 1 });
      ends.push(entry.end);
    }
  }
  return { blocks, more };
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
