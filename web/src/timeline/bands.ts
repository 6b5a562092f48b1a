// Claims that are drawn as one: the runs on a node, however many stand there at the same time, take a single lane.

import type { Span } from '../time/span';
import type { Claims } from './claims';
import type { Node, Tree } from './tree';
import type { Band, Id, Item, Level } from './types';
import { toSteps, useBelow } from './use';

export type CapacityOf = (resource: Id) => number | null;

/** Work of the queue that overlaps on a resource becomes one item; all else stays as it is. */
export function bandWork(items: readonly Item[], capacityOf: CapacityOf): Item[] {
  const others: Item[] = [];
  const work = new Map<Id, Item[]>();
  for (const item of items) {
    if (item.kind !== 'workload' || item.band) others.push(item);
    else if (work.has(item.resource)) work.get(item.resource)!.push(item);
    else work.set(item.resource, [item]);
  }
  for (const [resource, runs] of work) {
    for (const group of groupsOf(runs)) others.push(group.length === 1 ? group[0]! : bandOf(group, capacityOf(resource)));
  }
  return others;
}

/**
 * One item for the work in each node, on the row of the node: its cores, memory and GPUs are rows below. Each run takes some of
 * the cores, so the row with the most runs says how many they are. How full the node is counts all that is taken of it.
 */
export function nodeBands(work: readonly Item[], tree: Tree, claims: Claims): Item[] {
  const byNode = new Map<Node, Item[]>();
  for (const item of work) {
    const leaf = tree.byId.get(item.resource);
    if (item.kind !== 'workload' || !leaf?.parent || leaf.children.length > 0) continue;
    const known = byNode.get(leaf.parent);
    if (known) known.push(item);
    else byNode.set(leaf.parent, [item]);
  }
  return [...byNode].flatMap(([node, items]) => groupsOf(items, 1).map((group) => nodeBand(node, group, tree, claims)));
}

function nodeBand(node: Node, work: readonly Item[], tree: Tree, claims: Claims): Item {
  const span = { start: work[0]!.start, end: Math.max(...work.map(({ end }) => end)) };
  const band: Band = {
    count: Math.max(...work.map((item) => item.band?.count ?? 1)),
    stepMs: work.find((item) => item.band?.stepMs)?.band?.stepMs ?? null,
    levels: useBelow(node, tree, claims, span).steps.map((step) => ({ ...step, isFull: step.share >= 1 })),
  };
  return bandItem({ resource: node.row.id, kind: 'workload' }, `${node.row.id} node ${work[0]!.id}`, work, band);
}

/** What overlaps, directly or through others, stands in one group; also what is less than `gap` apart. */
function groupsOf(items: Item[], gap = 0): Item[][] {
  items.sort((a, b) => a.start - b.start);
  const groups: Item[][] = [];
  let end = -Infinity;
  for (const item of items) {
    if (item.start < end + gap) groups.at(-1)!.push(item);
    else groups.push([item]);
    end = Math.max(end, item.end);
  }
  return groups;
}

function bandOf(runs: readonly Item[], capacity: number | null): Item {
  const first = runs[0]!;
  const changes = runs.flatMap((run): [number, number][] => {
    const by = run.amount !== null && capacity ? run.amount / capacity : 1;
    return [[run.start, by], [run.end, -by]];
  });
  const counts = runs.flatMap((run): [number, number][] => [[run.start, 1], [run.end, -1]]);
  const levels = toSteps(changes, 1).map((step): Level => ({ ...step, isFull: step.share >= 1 }));
  const band = { count: peakOf(counts), stepMs: null, levels };
  return bandItem(first, `${first.resource} runs ${first.id}`, runs, band);
}

/** Contiguous steps of one kind on one resource, as one item. */
export function bandOfSteps(resource: Id, kind: Item['kind'], stepMs: number, steps: readonly (Level & { count: number; mine: boolean })[]): Item {
  const first = steps[0]!;
  const band: Band = { count: Math.max(...steps.map((step) => step.count)), stepMs, levels: steps };
  return bandItem({ resource, kind }, `${resource} ${kind} ${first.start}`, steps, band);
}

function bandItem(like: Pick<Item, 'resource' | 'kind'>, id: Id, parts: readonly (Span & { mine: boolean })[], band: Band): Item {
  return {
    id,
    resource: like.resource,
    start: parts[0]!.start,
    end: parts.reduce((latest, { end }) => Math.max(latest, end), 0),
    kind: like.kind,
    booking: null,
    title: null,
    owner: null,
    mine: parts.every(({ mine }) => mine),
    state: null,
    tentative: false,
    amount: null,
    editable: false,
    band,
  };
}

function peakOf(changes: [time: number, by: number][]): number {
  // What ends makes room for what begins at the same time.
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let now = 0;
  return changes.reduce((peak, [, by]) => Math.max(peak, (now += by)), 0);
}

/** The most of the resource that is taken, from 0 to 1. */
export function fullestOf(band: Band): number {
  return band.levels.reduce((most, { share }) => Math.max(most, share), 0);
}
