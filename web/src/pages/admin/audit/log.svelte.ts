/** The log as far as it was read, newest first. */
import { api, call } from '../../../api/client';
import { asFailure, type Failure } from '../../../api/problem';
import type { AuditEntry } from '../../../api/types';

const PAGE = 500;
/** One press looks through this many entries at most, so that it ends even where nothing matches. */
const PRESS = 10 * PAGE;

export class AuditLog {
  entries = $state.raw<readonly AuditEntry[]>([]);
  isReading = $state(false);
  isWhole = $state(false);
  failure = $state.raw<Failure | undefined>();
  #cursor: string | undefined;
  #turn = 0;

  constructor(readonly site: string | undefined) {}

  /** Reads on, page by page, until `isEnough` says so, the log ends, or a press's worth was read. */
  async read(isEnough: (entries: readonly AuditEntry[]) => boolean): Promise<void> {
    const turn = ++this.#turn;
    const until = this.entries.length + PRESS;
    this.isReading = true;
    try {
      while (!this.isWhole && this.entries.length < until && !isEnough(this.entries)) {
        const page = await this.#page();
        if (turn !== this.#turn) return;
        this.entries = [...this.entries, ...page.items];
        this.#cursor = page.next ?? undefined;
        this.isWhole = !page.next;
      }
      this.failure = undefined;
    } catch (thrown) {
      if (turn === this.#turn) this.failure = asFailure(thrown);
    }
    if (turn === this.#turn) this.isReading = false;
  }

  #page() {
    const query = { limit: PAGE, ...(this.#cursor ? { cursor: this.#cursor } : {}) };
    return this.site
      ? call(api.GET('/sites/{site}/audit', { params: { path: { site: this.site }, query } }))
      : call(api.GET('/audit', { params: { query } }));
  }
}
