/** The calendar entries of one or several sites in the time that is seen, kept fresh. */
import { api, call } from '../../api/client';
import { asFailure, type Failure } from '../../api/problem';
import type { CalendarEntry, CalendarSummary, Reservation } from '../../api/types';
import { covers, lengthOf, type Span } from '../../time/span';
import { loadedAround } from './window';

/** Shorter steps are worth reading when what would be loaded has less than half of the length. */
const COARSE = 2;

export class CalendarOf {
  entries = $state.raw<ReadonlyMap<string, readonly CalendarEntry[]>>(new Map());
  /** What is too much to list, of the sites where it is. */
  summaries = $state.raw<ReadonlyMap<string, CalendarSummary>>(new Map());
  /** One's own that wait for room; the calendar does not know of them, because they hold nothing. */
  waiting = $state.raw<readonly Reservation[]>([]);
  failure = $state.raw<Failure | undefined>();
  isLoading = $state(false);
  #loaded: Span | null = null;
  #names = '';
  #turn = 0;

  /** Makes sure that the range is loaded. */
  async show(names: readonly string[], range: Span): Promise<void> {
    const key = names.join();
    if (this.#loaded && this.#names === key && covers(this.#loaded, range) && !this.#isCoarse(range)) return;
    this.#names = key;
    this.#loaded = loadedAround(range);
    await this.reload(names);
  }

  /** Of less time more can be told: what is summed comes in shorter steps, or one by one. */
  #isCoarse(range: Span): boolean {
    if (this.summaries.size === 0 || !this.#loaded) return false;
    return lengthOf(this.#loaded) > COARSE * lengthOf(loadedAround(range));
  }

  async reload(names: readonly string[]): Promise<void> {
    const span = this.#loaded;
    if (!span) return;
    const turn = ++this.#turn;
    this.isLoading = true;
    const query = { from: new Date(span.start).toISOString(), to: new Date(span.end).toISOString() };
    try {
      const [waiting, ...calendars] = await Promise.all([
        call(api.GET('/me/reservations', { params: { query: { state: ['waiting'], limit: 100 } } })),
        ...names.map((site) => call(api.GET('/sites/{site}/calendar', { params: { path: { site }, query } }))),
      ]);
      if (turn !== this.#turn) return;
      this.waiting = waiting.items;
      const summaries = names.map((name, index) => [name, calendars[index]?.summary] as const);
      this.summaries = new Map(summaries.flatMap(([name, summary]) => (summary ? [[name, summary]] : [])));
      this.entries = new Map(names.map((name, index) => [name, calendars[index]?.items ?? []]));
      this.failure = undefined;
    } catch (thrown) {
      if (turn !== this.#turn) return;
      this.failure = asFailure(thrown);
      // The next time that the view moves, it is tried again.
      if (this.entries.size === 0) this.#loaded = null;
    }
    this.isLoading = false;
  }
}
