/** How a tree opens: level by level, as long as it can still be taken in at a glance. */
import type { Id, Row } from '../../timeline/types';

const GLANCE = 40;

export function firstFolds(rows: readonly Row[]): Set<Id> {
  const children = new Map<Id | null, Row[]>();
  for (const row of rows) children.set(row.parent, [...(children.get(row.parent) ?? []), row]);
  const branches = rows.filter((row) => children.has(row.id));
  const folded = new Set(branches.map((row) => row.id));
  let level = children.get(null) ?? [];
  let visible = level.length;
  for (;;) {
    const below = level.flatMap((row) => children.get(row.id) ?? []);
    if (below.length === 0 || visible + below.length > GLANCE) return folded;
    for (const row of level) folded.delete(row.id);
    visible += below.length;
    level = below;
  }
}
