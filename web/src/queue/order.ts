/** The order in which a list shows workloads: what comes next is on top. */
import { isOver, type Workload } from './types';

/** Those that wait, by when they are expected to begin; those that run, by when they end; those that are over, the latest first. */
export function inOrder(workloads: readonly Workload[]): Workload[] {
  return workloads.toSorted((a, b) => rank(a) - rank(b) || when(a) - when(b) || a.number - b.number);
}

function rank({ state }: Workload): number {
  return isOver(state) ? 3 : state === 'RUNNING' ? 2 : state === 'HELD' ? 1 : 0;
}

function when(one: Workload): number {
  if (isOver(one.state)) return -Date.parse(one.ended_at ?? one.since);
  if (one.state === 'RUNNING') return Math.min(Number.MAX_SAFE_INTEGER, ...one.runs.map(({ until }) => Date.parse(until)));
  return expectedStart(one) ?? Number.MAX_SAFE_INTEGER;
}

/** When it is promised or expected to begin. */
export function expectedStart({ waits }: Workload): number | null {
  const at = waits?.promised ?? waits?.forecast;
  return at ? Date.parse(at) : null;
}

/** Where its runs are, each node once. */
export function nodesOf({ runs }: Workload): string[] {
  return [...new Set(runs.filter(({ state }) => state !== 'ended').flatMap(({ nodes }) => nodes.map(({ node }) => node.name)))].sort();
}
