/** Which rows are folded; remembered while the pages are open, so that coming back finds the tree as it was left. */
import type { Id, Row } from '../../timeline/types';

const kept = new Map<string, ReadonlySet<Id>>();
/** A tree with more rows than this opens with its lowest branches folded: racks show servers, servers keep their parts. */
const MANY = 40;

export class Folds {
  folded = $state.raw<ReadonlySet<Id>>(new Set());
  #key = '';

  /** Called when the rows of a place are first known. */
  begin(key: string, rows: readonly Row[]): void {
    if (this.#key === key || rows.length === 0) return;
    this.#key = key;
    this.#set(kept.get(key) ?? new Set(rows.length > MANY ? lowestBranches(rows) : []));
  }

  toggle(id: Id, isFolded: boolean): void {
    const next = new Set(this.folded);
    if (isFolded) next.add(id);
    else next.delete(id);
    this.#set(next);
  }

  #set(folded: ReadonlySet<Id>): void {
    this.folded = folded;
    kept.set(this.#key, folded);
  }
}

/** Rows whose children have no children. */
export function lowestBranches(rows: readonly Row[]): Id[] {
  const parents = new Set(rows.map((row) => row.parent).filter((id) => id !== null));
  const hasBranchBelow = new Set(rows.filter((row) => parents.has(row.id)).map((row) => row.parent));
  return rows.filter((row) => parents.has(row.id) && !hasBranchBelow.has(row.id)).map((row) => row.id);
}
