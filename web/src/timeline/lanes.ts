// Items that overlap are drawn beside each other, each in the first lane that is free.

import type { Span } from '../time/span';
import type { Claims } from './claims';
import type { Id } from './types';

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

export interface RowLanes {
  readonly count: number;
  readonly laneOf: ReadonlyMap<Id, number>;
}

const ONE_LANE: RowLanes = { count: 1, laneOf: new Map() };

/** The lanes of a row, from all that is loaded: a row that grew and shrank while one scrolls would be hard to follow. */
export function lanesOn(claims: Claims, resource: Id): RowLanes {
  const items = claims.on(resource);
  const overlaps = items.some((item, i) => i > 0 && item.start < items[i - 1]!.end);
  if (!overlaps) return ONE_LANE;
  const laned = inLanes(items);
  return {
    count: Math.max(...laned.map(({ lanes }) => lanes)),
    laneOf: new Map(laned.map(({ item, lane }) => [item.id, lane])),
  };
}
