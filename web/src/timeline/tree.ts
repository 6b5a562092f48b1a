// The resources as a list in the order of the tree, and which of them are seen.

import type { Id, Row } from './types';

export interface Node {
  readonly row: Row;
  /** 0 at the top of the tree. */
  readonly level: number;
  readonly parent: Node | null;
  readonly children: readonly Node[];
  /** Its place in the tree read from top to bottom; all that is below follows up to, and without, `after`. */
  readonly index: number;
  readonly after: number;
  /** Its place among its siblings, from 1, and how many they are. */
  readonly position: number;
  readonly siblings: number;
}

export interface Tree {
  readonly nodes: readonly Node[];
  readonly byId: ReadonlyMap<Id, Node>;
}

type Draft<T> = { -readonly [K in keyof T]: T[K] };

/** A row whose parent is not among the rows (not loaded, or not to be seen) stands at the top. */
export function makeTree(rows: readonly Row[]): Tree {
  const known = new Set(rows.map((row) => row.id));
  const childrenOf = new Map<Id | null, Row[]>();
  for (const row of rows) {
    const parent = row.parent !== null && known.has(row.parent) ? row.parent : null;
    const siblings = childrenOf.get(parent);
    if (siblings) siblings.push(row);
    else childrenOf.set(parent, [row]);
  }

  const nodes: Node[] = [];
  const byId = new Map<Id, Node>();
  const place = (parent: Node | null, level: number): Node[] => {
    const siblings = childrenOf.get(parent?.row.id ?? null) ?? [];
    return siblings.map((row, i) => {
      const node: Draft<Node> = {
        row, level, parent, children: [], index: nodes.length, after: 0, position: i + 1, siblings: siblings.length,
      };
      nodes.push(node);
      byId.set(row.id, node);
      node.children = place(node, level + 1);
      node.after = nodes.length;
      return node;
    });
  };
  place(null, 0);
  return { nodes, byId };
}

/** The nodes that are seen: those that match and all above them, without what is folded away. */
export function visibleNodes(tree: Tree, folded: ReadonlySet<Id>, filter: ((row: Row) => boolean) | null): Node[] {
  const kept = filter ? withAncestors(tree.nodes.filter((node) => filter(node.row))) : null;
  const visible: Node[] = [];
  for (let i = 0; i < tree.nodes.length; ) {
    const node = tree.nodes[i]!;
    if (kept && !kept.has(node)) {
      // Were anything below kept, this one would be too.
      i = node.after;
      continue;
    }
    visible.push(node);
    i = folded.has(node.row.id) ? node.after : i + 1;
  }
  return visible;
}

function withAncestors(nodes: readonly Node[]): Set<Node> {
  const kept = new Set<Node>();
  for (const node of nodes) {
    for (let each: Node | null = node; each && !kept.has(each); each = each.parent) kept.add(each);
  }
  return kept;
}

/** From the parent up to the top. */
export function* ancestorsOf(node: Node): Generator<Node> {
  for (let each = node.parent; each; each = each.parent) yield each;
}

/** All that is below, at any depth. */
export function* descendantsOf(node: Node, tree: Tree): Generator<Node> {
  for (let i = node.index + 1; i < node.after; i++) yield tree.nodes[i]!;
}
