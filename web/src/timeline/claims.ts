// The items of each resource in order of time, to find those in a span without looking at the others.

import type { Span } from '../time/span';
import type { Id, Item } from './types';

interface Line {
  /** By start. */
  readonly items: readonly Item[];
  /** The latest end of all items up to each one. It never falls, so that a binary search finds what still lasts. */
  readonly reach: Float64Array;
}

export interface Claims {
  readonly byId: ReadonlyMap<Id, Item>;
  /** In order of start. */
  on(resource: Id): readonly Item[];
  /** Those that meet the span, in order of start. */
  within(resource: Id, span: Span): Item[];
  /** The items of one booking. */
  of(booking: Id): readonly Item[];
}

const NOTHING: readonly Item[] = [];

export function makeClaims(items: readonly Item[]): Claims {
  const byId = new Map<Id, Item>();
  const byResource = new Map<Id, Item[]>();
  const byBooking = new Map<Id, Item[]>();
  for (const item of items) {
    byId.set(item.id, item);
    push(byResource, item.resource, item);
    if (item.booking !== null) push(byBooking, item.booking, item);
  }
  // Most rows of a long tree are never looked at, so a line is put in order when it is first asked for.
  const lines = new Map<Id, Line>();
  const lineOf = (resource: Id): Line | null => {
    let line = lines.get(resource);
    if (!line) {
      const own = byResource.get(resource);
      if (!own) return null;
      lines.set(resource, (line = makeLine(own)));
    }
    return line;
  };

  return {
    byId,
    on: (resource) => lineOf(resource)?.items ?? NOTHING,
    of: (booking) => byBooking.get(booking) ?? NOTHING,
    within(resource, span) {
      const line = lineOf(resource);
      const found: Item[] = [];
      if (!line) return found;
      for (let i = firstReaching(line.reach, span.start); i < line.items.length; i++) {
        const item = line.items[i]!;
        if (item.start >= span.end) break;
        if (item.end > span.start) found.push(item);
      }
      return found;
    },
  };
}

function push(lists: Map<Id, Item[]>, key: Id, item: Item): void {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}

function makeLine(items: Item[]): Line {
  items.sort((a, b) => a.start - b.start || b.end - a.end);
  const reach = new Float64Array(items.length);
  let latest = -Infinity;
  items.forEach((item, i) => (reach[i] = latest = Math.max(latest, item.end)));
  return { items, reach };
}

/** The first place whose reach is beyond the time. */
function firstReaching(reach: Float64Array, time: number): number {
  let low = 0;
  let high = reach.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (reach[middle]! > time) high = middle;
    else low = middle + 1;
  }
  return low;
}
