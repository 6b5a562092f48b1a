// Where the keyboard stands: on a resource's name, on an item, or on a step of empty time; and where each arrow leads.

import { holdsMoment } from '../time/span';
import type { Claims } from './claims';
import type { Steps } from './steps';
import type { Node } from './tree';
import type { Id, Item } from './types';

export interface Cursor {
  readonly row: Id;
  readonly part: 'name' | 'time';
  /** On time: the start of the step, or a moment of the item. On a name it remembers where in time one was. */
  readonly time: number;
  readonly item: Id | null;
}

export interface Ground {
  readonly visible: readonly Node[];
  readonly claims: Claims;
  readonly steps: Steps;
}

type Direction = 1 | -1;

/** Along time: the next item where one begins before the next step is over, or that step. */
export function alongTime(cursor: Cursor, to: Direction, { claims, steps }: Ground): Cursor {
  const line = claims.on(cursor.row);
  const current = cursor.item === null ? null : (claims.byId.get(cursor.item) ?? null);
  if (to === 1) {
    const from = current ? current.end : steps.up(cursor.time + 1);
    const until = steps.up(from + 1);
    const next = line.find((item) => comesAfter(item, current, cursor.time) && item.start < until);
    return next ? onItem(cursor, next) : onTime(cursor, from);
  }
  const from = steps.down((current ? current.start : cursor.time) - 1);
  const previous = line.findLast((item) => comesBefore(item, current, cursor.time) && item.end > from);
  return previous ? onItem(cursor, previous) : onTime(cursor, from);
}

function comesAfter(item: Item, current: Item | null, time: number): boolean {
  if (!current) return item.start >= time;
  return item.start > current.start || (item.start === current.start && item.end < current.end);
}

function comesBefore(item: Item, current: Item | null, time: number): boolean {
  if (!current) return item.end <= time || item.start < time;
  return item.start < current.start || (item.start === current.start && item.end > current.end);
}

/** To the next item of the row, however far. */
export function toItem(cursor: Cursor, to: Direction, { claims }: Ground): Cursor {
  const line = claims.on(cursor.row);
  const current = cursor.item === null ? null : (claims.byId.get(cursor.item) ?? null);
  const found =
    to === 1
      ? line.find((item) => comesAfter(item, current, cursor.time))
      : line.findLast((item) => comesBefore(item, current, cursor.time));
  return found ? onItem(cursor, found) : cursor;
}

/** Up or down the rows, at the same time; at the ends it stays. */
export function alongRows(cursor: Cursor, by: number, ground: Ground): Cursor {
  const { visible } = ground;
  const index = visible.findIndex((node) => node.row.id === cursor.row);
  const target = visible[Math.max(0, Math.min(visible.length - 1, index + by))];
  return target ? placeAt(cursor, target.row.id, cursor.time, ground) : cursor;
}

/** On the row at a time: on the item there, or on the step that holds it. */
export function placeAt(cursor: Cursor, row: Id, time: number, { claims, steps }: Ground): Cursor {
  if (cursor.part === 'name') return { ...cursor, row };
  const there = claims.within(row, { start: time, end: time + 1 }).find((item) => holdsMoment(item, time));
  return there ? { row, part: 'time', time, item: there.id } : onTime({ ...cursor, row }, steps.down(time));
}

function onItem(cursor: Cursor, item: Item): Cursor {
  return { row: cursor.row, part: 'time', time: item.start, item: item.id };
}

function onTime(cursor: Cursor, time: number): Cursor {
  return { row: cursor.row, part: 'time', time, item: null };
}
