// Items that overlap are drawn beside each other, each in the first lane that is free.

import type { Span } from '../time/span';

export interface Laned<T> {
  readonly item: T;
  readonly lane: number;
  /** How many lanes the group needs that this one overlaps with, directly or through others. */
  readonly lanes: number;
}

/** Items must come in order of start. */
export function inLanes<T extends Span>(items: readonly T[]): Laned<T>[] {
  const placed: { item: T; lane: number; lanes: number }[] = [];
  let ends: number[] = [];
  let groupFrom = 0;
  let groupEnd = -Infinity;
  const closeGroup = () => {
    for (let i = groupFrom; i < placed.length; i++) placed[i]!.lanes = ends.length;
  };
  for (const item of items) {
    if (item.start >= groupEnd) {
      closeGroup();
      groupFrom = placed.length;
      ends = [];
    }
    const free = ends.findIndex((end) => end <= item.start);
    const lane = free === -1 ? ends.length : free;
    ends[lane] = item.end;
    groupEnd = Math.max(groupEnd, item.end);
    placed.push({ item, lane, lanes: 0 });
  }
  closeGroup();
  return placed;
}
