/** Which rows are folded; remembered while the pages are open, so that coming back finds the tree as it was left. */
import type { Id, Row } from '../../timeline/types';
import { firstFolds } from './first-folds';

const kept = new Map<string, ReadonlySet<Id>>();

export class Folds {
  folded = $state.raw<ReadonlySet<Id>>(new Set());
  #key = '';

  /** Called when the rows of a place are first known. */
  begin(key: string, rows: readonly Row[]): void {
    if (this.#key === key || rows.length === 0) return;
    this.#key = key;
    this.#set(kept.get(key) ?? firstFolds(rows));
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
