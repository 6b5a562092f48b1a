/** The calendar entries of one or several sites in the time that is seen, kept fresh. */
import { api, call } from '../../api/client';
import { asFailure, type Failure } from '../../api/problem';
import type { CalendarEntry, Reservation } from '../../api/types';
import { covers, type Span } from '../../time/span';
import { loadedAround } from './window';

export class CalendarOf {
  entries = $state.raw<ReadonlyMap<string, readonly CalendarEntry[]>>(new Map());
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
    if (this.#loaded && this.#names === key && covers(this.#loaded, range)) return;
    this.#names = key;
    this.#loaded = loadedAround(range);
    await this.reload(names);
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
