// The claim rule on what is loaded: who takes a resource takes all that is below it, and nothing above it is free whole.
// The server decides; this only spares a person the way there and back.

import { MINUTE, overlaps, shifted, type Span } from '../time/span';
import type { Claims } from './claims';
import { ancestorsOf, descendantsOf, type Node, type Tree } from './tree';
import type { Draft, Id, Item, Judge, Labels, Verdict } from './types';
import { takenSpans, takesTime } from './use';

export interface Rules {
  readonly tree: Tree;
  readonly claims: Claims;
  readonly now: number;
  readonly words: Labels['verdict'];
  readonly judge?: Judge | undefined;
}

/** What the rule says of a new booking, or of `moved` if it stood where the draft stands. */
export function verdictOf(draft: Draft, moved: Item | null, rules: Rules): Verdict {
  const refusal = refusalOf(draft, moved, rules);
  if (refusal !== null) return { kind: 'not_allowed', why: refusal };
  const own = claimVerdict(draft, moved?.booking ?? null, rules);
  if (own.kind !== 'free' || !moved) return own;
  for (const companion of companionsOf(moved, rules.claims)) {
    const stands = claimVerdict(draftOfCompanion(companion, moved, draft), moved.booking, rules);
    if (stands.kind !== 'free') return stands;
  }
  return own;
}

/** As late as the server still accepts a start: a person may fill in a form for a while. */
const LATE_START = 5 * MINUTE;

function refusalOf(draft: Draft, moved: Item | null, rules: Rules): string | null {
  const { words, tree, now } = rules;
  const startChanges = moved?.start !== draft.start;
  if (moved && moved.start <= now && startChanges) return words.hasBegun;
  if (draft.end <= now || (startChanges && draft.start + LATE_START < now)) return words.inThePast;
  const row = draft.resource === null ? null : tree.byId.get(draft.resource)?.row;
  const isNewThere = moved?.resource !== draft.resource;
  if (row && isNewThere) {
    if (row.status === 'maintenance') return words.inMaintenance(row.name);
    if (row.status === 'unavailable') return words.unavailable(row.name);
    if (!row.bookable) return words.notBookable(row.name);
  }
  return rules.judge?.(draft, moved) ?? null;
}

/** The other resources of the same booking. */
export function companionsOf(item: Item, claims: Claims): Item[] {
  if (item.booking === null) return [];
  return claims.of(item.booking).filter((each) => each.id !== item.id);
}

/** Where a companion stands when the item stands where the draft does. Buffers keep their length; all else follows the booking. */
function draftOfCompanion(companion: Item, moved: Item, draft: Draft): Draft {
  const { resource, amount } = companion;
  if (companion.kind === 'buffer') {
    const isBefore = companion.end <= moved.start;
    return { resource, amount, ...shifted(companion, isBefore ? draft.start - moved.start : draft.end - moved.end) };
  }
  return { resource, amount, start: draft.start, end: draft.end };
}

function claimVerdict(draft: Draft, booking: Id | null, { tree, claims }: Rules): Verdict {
  const node = draft.resource === null ? undefined : tree.byId.get(draft.resource);
  if (!node) return { kind: 'free', left: null };
  const inTheWay = (each: Node): Item | undefined =>
    claims.within(each.row.id, draft).find((item) => takesSome(item, draft) && !(booking !== null && item.booking === booking));

  if (node.row.capacity) {
    const shared = sharedVerdict(draft, booking, node, claims);
    if (shared.kind !== 'free') return shared;
    const above = firstBlocking(ancestorsOf(node), inTheWay);
    return above ? { kind: 'blocked_by_parent', ...above } : shared;
  }
  const by = inTheWay(node);
  if (by) return { kind: 'busy', by };
  const above = firstBlocking(ancestorsOf(node), inTheWay);
  if (above) return { kind: 'blocked_by_parent', ...above };
  const below = firstBlocking(descendantsOf(node, tree), inTheWay);
  if (below) return { kind: 'blocked_by_child', ...below };
  return { kind: 'free', left: null };
}

/** Of what is summed only the full steps are sure to be in the way. */
function takesSome(item: Item, span: Span): boolean {
  return takenSpans(item).some((taken) => overlaps(taken, span));
}

function firstBlocking(nodes: Iterable<Node>, inTheWay: (node: Node) => Item | undefined) {
  for (const node of nodes) {
    const by = inTheWay(node);
    if (by) return { row: node.row, by };
  }
  return null;
}

function sharedVerdict(draft: Draft, booking: Id | null, node: Node, claims: Claims): Verdict {
  const capacity = node.row.capacity!.amount;
  const others = claims
    .within(node.row.id, draft)
    .filter((item) => takesTime(item) && !(booking !== null && item.booking === booking));
  const whole = others.find((item) => item.amount === null && takesSome(item, draft));
  if (whole) return { kind: 'busy', by: whole };
  // Of sums it is not known how much is left all through.
  if (others.some((item) => item.band)) return { kind: 'free', left: null };
  const left = capacity - peakOf(others, draft);
  const wanted = draft.amount ?? 1;
  const latest = others.reduce<Item | null>((last, item) => (last && last.end >= item.end ? last : item), null);
  if (left < wanted && latest) return { kind: 'busy', by: latest };
  return { kind: 'free', left };
}

/** The most that is taken at once within the span. */
function peakOf(items: readonly Item[], span: Span): number {
  const changes = items.flatMap((item): [number, number][] => [
    [Math.max(item.start, span.start), item.amount ?? 0],
    [item.end, -(item.amount ?? 0)],
  ]);
  // What ends makes room for what begins at the same time.
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let used = 0;
  let peak = 0;
  for (const [, by] of changes) peak = Math.max(peak, (used += by));
  return peak;
}
