/** The notification centre's list: made from the events that concern the person, kept while they are signed in. */
import { api, call } from '../api/client';
import { asFailure, type Failure } from '../api/problem';
import type { Event as BerthEvent, State } from '../api/types';
import { live } from '../live/stream.svelte';
import { noticeOf, type Notice, type Reader } from './notices';
import { preferences } from './preferences.svelte';
import { session } from './session.svelte';

/** How many events to look back through when the pages are opened: some days of a busy site. */
const LOOK_BACK = 1_000;
const KEEP = 300;

class Notices {
  list = $state.raw<readonly Notice[]>([]);
  isLoaded = $state(false);
  failure = $state.raw<Failure | undefined>();
  #resources: ReadonlySet<string> = new Set();

  /** The number of the last event that was marked as read. */
  get readTo(): number {
    return preferences.readTo;
  }

  get unread(): number {
    return this.list.filter((notice) => notice.number > this.readTo).length;
  }

  markAllRead(): void {
    preferences.set({ readTo: Math.max(this.readTo, this.list[0]?.number ?? 0) });
  }

  /** Reads what has happened up to now, and hears what happens from now on. */
  follow(): () => void {
    const stop = live.hear((event) => this.#add([event]));
    return () => {
      stop();
      this.list = [];
      this.isLoaded = false;
    };
  }

  async read(position: number): Promise<void> {
    try {
      await this.#readOwnResources();
      const first = Math.max(0, position - LOOK_BACK);
      let page = await call(api.GET('/events', { params: { query: { after: first, limit: 500 } } }));
      this.#add(page.items);
      while (page.more) {
        page = await call(api.GET('/events', { params: { query: { after: page.after, limit: 500 } } }));
        this.#add(page.items);
      }
      // Whoever signs in for the first time is not greeted with a hundred unread notices.
      if (this.readTo === 0) this.markAllRead();
      this.isLoaded = true;
      this.failure = undefined;
    } catch (thrown) {
      this.failure = asFailure(thrown);
    }
  }

  async #readOwnResources(): Promise<void> {
    const state: State[] = ['pending_approval', 'confirmed', 'starting', 'active'];
    const query = { state, limit: 500 };
    const mine = await call(api.GET('/me/reservations', { params: { query } }));
    this.#resources = new Set(mine.items.flatMap((item) => item.resources.map(({ resource }) => resource.id)));
  }

  #add(events: readonly BerthEvent[]): void {
    const reader: Reader = {
      person: session.person?.id ?? '',
      resources: this.#resources,
      administers: (site) => session.isAdmin(site),
    };
    const known = new Set(this.list.map((notice) => notice.number));
    const fresh = events
      .map((event) => noticeOf(event, reader))
      .filter((notice): notice is Notice => notice !== null && !known.has(notice.number));
    if (fresh.length === 0) return;
    this.list = [...fresh, ...this.list].sort((a, b) => b.number - a.number).slice(0, KEEP);
  }
}

export const notices = new Notices();
