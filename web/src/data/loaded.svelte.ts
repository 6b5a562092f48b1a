/**
 * What a page reads from the server, with its three states: on its way, there, refused.
 *
 * Old data stays on the screen while newer is read, so that a live update never flashes; and when two readings overlap the
 * later question wins, whichever answer comes last.
 */
import { untrack } from 'svelte';
import { asFailure, type Failure } from '../api/problem';
import { isOf, live } from '../live/stream.svelte';

export class Loaded<T> {
  value = $state.raw<T | undefined>();
  failure = $state.raw<Failure | undefined>();
  isLoading = $state(true);
  #turn = 0;

  constructor(readonly ask: () => Promise<T>) {}

  /** Reads again. Whatever `ask` reads before its first `await` is tracked by an effect that calls this. */
  reload = async (): Promise<void> => {
    const answer = this.ask();
    const turn = untrack(() => {
      this.isLoading = true;
      return ++this.#turn;
    });
    try {
      const value = await answer;
      if (turn !== this.#turn) return;
      this.value = value;
      this.failure = undefined;
    } catch (thrown) {
      if (turn !== this.#turn) return;
      this.failure = asFailure(thrown);
    }
    this.isLoading = false;
  };

  /** Puts in what the server just answered to a change, so that the page need not ask for it. */
  put(value: T): void {
    this.#turn += 1;
    this.value = value;
    this.isLoading = false;
  }
}

/** Which events make a reading old. */
export interface Freshness {
  /** Families of kinds: `reservation`, `resource`. */
  readonly families: readonly string[];
  /** Only events of this site, by name. */
  readonly site?: () => string | undefined;
  /** Read at most once in so many milliseconds; for what is only glanced at. */
  readonly calmMs?: number;
  /** Read again after so long although nothing was heard: for what others are told, and not the person. */
  readonly pollMs?: number | undefined;
}

/** Bursts of events, such as a series being booked, cause one reading. */
const GATHER_MS = 120;

/** Reads when the component appears, when what `ask` depends on changes, and when an event says so. */
export function load<T>(ask: () => Promise<T>, freshness?: Freshness): Loaded<T> {
  const loaded = new Loaded(ask);
  $effect(() => {
    void loaded.reload();
  });
  if (freshness) keepFresh(freshness, () => void loaded.reload());
  return loaded;
}

/** Calls `act` soon after events of these families, and after a lost line is back. */
export function keepFresh(freshness: Freshness, act: () => void): void {
  $effect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let actedAt = 0;
    // One that is due is not put off by the next event: a site where something always happens must be seen, too.
    const soon = () => {
      const calm = actedAt + (freshness.calmMs ?? 0) - Date.now();
      timer ??= setTimeout(() => {
        timer = undefined;
        actedAt = Date.now();
        act();
      }, Math.max(GATHER_MS, calm));
    };
    const stopHearing = live.hear((event) => {
      const site = freshness.site?.();
      if (isOf(event.kind, freshness.families) && (!site || event.site?.name === site)) soon();
    });
    const stopHealing = live.healed(soon);
    const poll = freshness.pollMs ? setInterval(() => document.hidden || act(), freshness.pollMs) : undefined;
    return () => {
      clearTimeout(timer);
      clearInterval(poll);
      stopHearing();
      stopHealing();
    };
  });
}
