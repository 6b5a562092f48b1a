/**
 * How many resources a site has, and how many of them are free now.
 *
 * The server counts; pages only add up its rows. A page that shows such a number takes it from here, so that no two pages
 * disagree.
 */
import type { ResourceCount, Tally } from '../api/types';

const NOTHING: Tally = { total: 0, free: 0, running: 0, reserved: 0, cut: 0, out_of_service: 0 };

function plus(one: Tally, other: Tally): Tally {
  return {
    total: one.total + other.total,
    free: one.free + other.free,
    running: one.running + other.running,
    reserved: one.reserved + other.reserved,
    cut: one.cut + other.cut,
    out_of_service: one.out_of_service + other.out_of_service,
  };
}

function sum(counts: readonly ResourceCount[], of: (count: ResourceCount) => Tally = ({ resources }) => resources): Tally {
  return counts.map(of).reduce(plus, NOTHING);
}

export interface TypeCount {
  readonly type: string;
  readonly title: string;
  /** All that people can book, in nodes of the queue or not. */
  readonly bookable: Tally;
  /** Of these, how many stand in nodes of the queue. */
  readonly inNodes: number;
}

/** Types that a site has most of come first. Cores, memory and seats are left out: people book amounts of them, not pieces. */
export function countByType(counts: readonly ResourceCount[]): TypeCount[] {
  const pieces = counts.filter(({ capacity, role }) => !capacity || role === 'gpu');
  const types = new Map(pieces.map(({ type }) => [type.name, type]));
  return [...types.values()]
    .map(({ name, title }) => {
      const rows = pieces.filter(({ type }) => type.name === name);
      return { type: name, title, bookable: sum(rows), inNodes: sum(rows.filter(({ in_node }) => in_node)).total };
    })
    .sort((a, b) => b.bookable.total - a.bookable.total || a.type.localeCompare(b.type));
}

/** What the queue's nodes have. */
export interface NodeCounts {
  readonly gpus: Tally;
  readonly slices: Tally;
  readonly cores: Tally;
}

export function countInNodes(counts: readonly ResourceCount[]): NodeCounts {
  const rows = counts.filter(({ in_node }) => in_node);
  const cores = rows.filter(({ role }) => role === 'cores');
  return {
    gpus: sum(rows.filter(({ role }) => role === 'gpu')),
    slices: sum(rows.filter(({ role }) => role === 'slice')),
    cores: sum(cores, ({ capacity }) => (capacity ? scaled(capacity, capacity.unit === 'millicores' ? 0.001 : 1) : NOTHING)),
  };
}

function scaled(tally: Tally, by: number): Tally {
  const { total, free, running, reserved, cut, out_of_service } = tally;
  return { total: total * by, free: free * by, running: running * by, reserved: reserved * by, cut: cut * by, out_of_service: out_of_service * by };
}

export interface Stock {
  readonly all: number;
  readonly free: number;
}

/** What work can ask for: the models of GPUs and the profiles of slices that the nodes have. */
export interface Options {
  readonly models: ReadonlyMap<string, Stock>;
  readonly slices: ReadonlyMap<string, Stock>;
}

export function optionsOf(counts: readonly ResourceCount[]): Options {
  const rows = counts.filter(({ in_node }) => in_node);
  const stock = (role: 'gpu' | 'slice', name: (count: ResourceCount) => string | undefined) => {
    const found = new Map<string, Stock>();
    for (const count of rows.filter((one) => one.role === role)) {
      const key = name(count);
      if (key === undefined) continue;
      const before = found.get(key) ?? { all: 0, free: 0 };
      const { total, cut, free } = count.resources;
      // A GPU that is cut cannot be given to work as a whole.
      if (total > cut) found.set(key, { all: before.all + total - cut, free: before.free + free });
    }
    return found;
  };
  return { models: stock('gpu', ({ model }) => model), slices: stock('slice', ({ profile }) => profile) };
}
