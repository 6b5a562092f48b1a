// Bookings and work as a calendar shows them: one with several resources is one entry, and buffers belong to their booking.

import { overlaps, type Span } from '../time/span';
import { daysOf } from '../time/zone';
import type { Tree } from '../timeline/tree';
import type { Item, Row } from '../timeline/types';

export interface Entry extends Span {
  readonly item: Item;
  readonly rows: readonly Row[];
}

type Growing = { -readonly [K in keyof Entry]: Entry[K] } & { rows: Row[] };

/** In order of start, the longest first. */
export function entriesOf(items: readonly Item[], tree: Tree, range: Span): Entry[] {
  const entries: Growing[] = [];
  const latest = new Map<string, Growing>();
  for (const item of items.filter((one) => one.kind !== 'buffer' && overlaps(one, range)).sort((a, b) => a.start - b.start)) {
    const row = tree.byId.get(item.resource)?.row;
    const key = keyOf(item);
    const last = latest.get(key);
    if (last && item.start <= last.end) {
      last.end = Math.max(last.end, item.end);
      if (row && !last.rows.includes(row)) last.rows.push(row);
      continue;
    }
    const entry = { item, rows: row ? [row] : [], start: item.start, end: item.end };
    entries.push(entry);
    latest.set(key, entry);
  }
  return entries.sort((a, b) => a.start - b.start || b.end - a.end);
}

/** The parts of a booking have one span. The resources of a workload come and go while it runs. */
function keyOf(item: Item): string {
  if (item.kind === 'workload') return `workload ${item.booking ?? item.id}`;
  return `${item.booking ?? item.id} ${item.start} ${item.end}`;
}

/** The entries that meet each day, in order. */
export function byDay(entries: readonly Entry[], days: readonly number[], zone: string, end: number): Map<number, Entry[]> {
  const lists = new Map<number, Entry[]>(days.map((day) => [day, []]));
  const range = { start: days[0] ?? 0, end };
  for (const entry of entries) {
    if (!overlaps(entry, range)) continue;
    const within = { start: Math.max(entry.start, range.start), end: Math.min(entry.end, range.end) };
    for (const day of daysOf(within, zone)) lists.get(day)?.push(entry);
  }
  return lists;
}

/** What a day holds, in numbers. */
export interface DaySum {
  readonly bookings: number;
  /** How many workloads ran. */
  readonly runs: number;
  readonly mine: number;
  readonly maintenance: number;
}

export function sumOf(entries: readonly Entry[]): DaySum {
  let mine = 0;
  let maintenance = 0;
  let runs = 0;
  for (const { item } of entries) {
    if (item.mine) mine += 1;
    if (item.kind === 'maintenance') maintenance += 1;
    if (item.kind === 'workload') runs += 1;
  }
  return { bookings: entries.length - maintenance - runs, runs, mine, maintenance };
}

/** The names of its resources, as far as there is room for them. */
export function namesOf({ rows }: Entry): string {
  const [first, ...more] = rows;
  if (!first) return '';
  return more.length === 0 ? first.name : `${first.name} +${more.length}`;
}

/** Where there is room for `count` of them: one's own first, and still in order. */
export function firstOf(entries: readonly Entry[], count: number): readonly Entry[] {
  if (entries.length <= count) return entries;
  const chosen = new Set([...entries.filter(({ item }) => item.mine), ...entries.filter(({ item }) => !item.mine)].slice(0, count));
  return entries.filter((entry) => chosen.has(entry));
}
