/** Which rows are shown. */
import type { Resource } from '../../api/types';
import type { Id, Item, Row } from '../../timeline/types';

export interface RowFilter {
  readonly text: string;
  readonly type: string;
  /** `gpu_model=A100` */
  readonly attribute: string;
  readonly status: string;
  readonly freeNow: boolean;
}

export function countActive(filter: RowFilter): number {
  return [filter.text, filter.type, filter.attribute, filter.status, filter.freeNow].filter(Boolean).length;
}

/** A test for rows, or null where all of them are wanted. */
export function rowTest(filter: RowFilter, resources: ReadonlyMap<Id, Resource>, taken: ReadonlySet<Id>): ((row: Row) => boolean) | null {
  if (countActive(filter) === 0) return null;
  const text = filter.text.toLowerCase();
  return (row) => {
    const resource = resources.get(row.id);
    if (!resource) return false;
    if (text && ![row.name, row.title ?? '', row.typeTitle].some((words) => words.toLowerCase().includes(text))) return false;
    if (filter.type && resource.type.name !== filter.type) return false;
    if (filter.attribute && !hasAttribute(resource, filter.attribute)) return false;
    if (filter.status && resource.effective_status !== filter.status) return false;
    return !filter.freeNow || (resource.effective_status === 'ACTIVE' && !taken.has(row.id));
  };
}

function hasAttribute(resource: Resource, wanted: string): boolean {
  const at = wanted.indexOf('=');
  return String(resource.attributes[wanted.slice(0, at)]) === wanted.slice(at + 1);
}

/** The attributes worth a choice: those that some resources have and others do not, with few values. */
export function attributeChoices(resources: readonly Resource[]): string[] {
  const values = new Map<string, Set<string>>();
  for (const resource of resources) {
    for (const [key, value] of Object.entries(resource.attributes)) {
      const known = values.get(key) ?? new Set();
      values.set(key, known.add(String(value)));
    }
  }
  return [...values]
    .filter(([, set]) => set.size <= 12)
    .flatMap(([key, set]) => [...set].sort().map((value) => `${key}=${value}`));
}

/** What is taken at a moment: by a claim on it, above it, or on a part of it. What is divisible counts when all is taken. */
export function takenAt(moment: number, rows: readonly Row[], items: readonly Item[]): Set<Id> {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const children = new Map<Id, Row[]>();
  for (const row of rows) if (row.parent) children.set(row.parent, [...(children.get(row.parent) ?? []), row]);
  const taken = new Set<Id>();
  const used = new Map<Id, number>();
  for (const item of items) {
    if (item.kind === 'waiting' || item.start > moment || item.end <= moment) continue;
    const row = byId.get(item.resource);
    if (!row) continue;
    if (item.band) {
      if (item.band.levels.some((level) => level.isFull && level.start <= moment && moment < level.end)) takeBelow(row);
    } else if (row.capacity && item.amount !== null) {
      const sum = (used.get(row.id) ?? 0) + item.amount;
      used.set(row.id, sum);
      if (sum >= row.capacity.amount) taken.add(row.id);
    } else takeBelow(row);
    for (let above = row.parent; above; above = byId.get(above)?.parent ?? null) taken.add(above);
  }
  return taken;

  function takeBelow(row: Row): void {
    taken.add(row.id);
    for (const child of children.get(row.id) ?? []) takeBelow(child);
  }
}
