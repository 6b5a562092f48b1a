// Items that overlap are drawn beside each other, each in the first lane that is free.

import { overlaps, type Span } from '../time/span';
import type { Claims } from './claims';
import type { Id, Item } from './types';

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

/** Work of the queue needs one lane, in which it never meets itself; it is drawn below what it meets. */
function withWork(others: readonly Item[], work: readonly Item[]): RowLanes {
  const laned = inLanes(others);
  const below = Math.max(0, ...laned.map(({ lanes }) => lanes));
  const workLane = work.some((one) => others.some((other) => overlaps(one, other))) ? below : 0;
  return {
    count: Math.max(1, below, workLane + 1),
    laneOf: new Map([...laned.map(({ item, lane }) => [item.id, lane] as const), ...work.map((one) => [one.id, workLane] as const)]),
  };
}

/** The lanes of a row, from all that is loaded: a row that grew and shrank while one scrolls would be hard to follow. */
export function lanesOn(claims: Claims, resource: Id): RowLanes {
  const items = claims.on(resource);
  let end = -Infinity;
  const meet = items.some((item) => item.start < end || ((end = Math.max(end, item.end)), false));
  if (!meet) return ONE_LANE;
  return withWork(items.filter((item) => item.kind !== 'workload'), items.filter((item) => item.kind === 'workload'));
}
