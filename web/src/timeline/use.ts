// How much of what is below a resource is in use over time: the strip under a row, which tells a rack's state at a glance.

import { overlaps, within, type Span } from '../time/span';
import type { Claims } from './claims';
import { ancestorsOf, descendantsOf, type Node, type Tree } from './tree';
import type { Band, Item } from './types';

export interface UseStep extends Span {
  /** From 0 to 1. */
  readonly share: number;
}

export interface Use {
  readonly steps: readonly UseStep[];
  /** How many leaves lie below. */
  readonly leaves: number;
}

/** Waiting takes nothing, and all else does. */
export function takesTime(item: Item): boolean {
  return item.kind !== 'waiting';
}

/**
 * The share of the leaves below `node` that are taken at each time within the span. A claim on a group below takes all
 * the leaves in it; a shared leaf is taken by as much as is taken of it.
 */
export function useBelow(node: Node, tree: Tree, claims: Claims, span: Span): Use {
  const changes: [time: number, by: number][] = [];
  let leaves = 0;
  for (const each of descendantsOf(node, tree)) {
    const weight = leavesOf(each, tree);
    if (each.children.length === 0) leaves += 1;
    for (const item of claims.within(each.row.id, span)) {
      const part = takesTime(item) ? within(item, span) : null;
      if (!part) continue;
      if (item.band) {
        changes.push(...levelChanges(item.band, weight, span));
        continue;
      }
      const by = item.amount !== null && each.row.capacity ? item.amount / each.row.capacity.amount : weight;
      changes.push([part.start, by], [part.end, -by]);
    }
  }
  return { steps: leaves === 0 ? [] : toSteps(changes, leaves), leaves };
}

/** What is left of the steps beside these spans. */
export function stepsBeside(steps: readonly UseStep[], spans: readonly Span[]): UseStep[] {
  let left = [...steps];
  for (const span of spans) {
    left = left.flatMap((step) => {
      if (!overlaps(step, span)) return [step];
      const parts = [{ ...step, end: span.start }, { ...step, start: span.end }];
      return parts.filter(({ start, end }) => start < end);
    });
  }
  return left;
}

function levelChanges(band: Band, weight: number, span: Span): [time: number, by: number][] {
  return band.levels.flatMap((level) => {
    const part = within(level, span);
    const by = level.share * weight;
    return part ? [[part.start, by], [part.end, -by]] : [];
  });
}

/** The times at which an item leaves nothing of its resource to those below. */
export function takenSpans(item: Item): readonly Span[] {
  if (!takesTime(item)) return [];
  return item.band ? item.band.levels.filter(({ isFull }) => isFull) : [item];
}

/** How many of the leaves below are in use at a moment: all, where the node itself or one above it is taken. */
export function usedBelow(node: Node, tree: Tree, claims: Claims, time: number): { used: number; leaves: number } {
  const moment = { start: time, end: time + 1 };
  const isTaken = (each: Node) => claims.within(each.row.id, moment).some((item) => takenSpans(item).some((span) => overlaps(span, moment)));
  const { steps, leaves } = useBelow(node, tree, claims, moment);
  const isTakenWhole = [node, ...ancestorsOf(node)].some(isTaken);
  return { used: isTakenWhole ? leaves : Math.round((steps[0]?.share ?? 0) * leaves), leaves };
}

const leafCounts = new WeakMap<Node, number>();

function leavesOf(node: Node, tree: Tree): number {
  if (node.children.length === 0) return 1;
  let count = leafCounts.get(node);
  if (count === undefined) {
    count = 0;
    for (const each of descendantsOf(node, tree)) if (each.children.length === 0) count += 1;
    leafCounts.set(node, count);
  }
  return count;
}

/** The sum of the changes over time, as a share of `leaves`; what is not above nothing is left out. */
export function toSteps(changes: [number, number][], leaves: number): UseStep[] {
  changes.sort((a, b) => a[0] - b[0]);
  const steps: UseStep[] = [];
  let used = 0;
  for (let i = 0; i < changes.length; ) {
    const start = changes[i]![0];
    for (; i < changes.length && changes[i]![0] === start; i++) used += changes[i]![1];
    const end = changes[i]?.[0];
    // Sums of shares like 1/3 leave crumbs behind.
    if (end !== undefined && used > 1e-6) steps.push({ start, end, share: Math.min(1, used / leaves) });
  }
  return steps;
}

/** The strip as the outline of an SVG path, `height` high; `x` turns times into pixels. */
export function usePath(steps: readonly UseStep[], x: (time: number) => number, height: number): string {
  let path = '';
  for (const { start, end, share } of steps) {
    const top = (height * (1 - share)).toFixed(1);
    path += `M${x(start).toFixed(1)} ${height}V${top}H${x(end).toFixed(1)}V${height}Z`;
  }
  return path;
}
