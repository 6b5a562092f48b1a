/**
 * What the server tells this person. How much of it is unread is in the header of every page; the list itself is read by the
 * page that shows it.
 */
import { api, call } from '../api/client';
import { asFailure } from '../api/problem';
import type { Notification } from '../api/types';
import { live } from '../live/stream.svelte';
import { session } from './session.svelte';

/** More at once is a flood, and is better read on its page. */
const FRESH_MAX = 5;

type Hear = (fresh: readonly Notification[]) => void;

class Notifications {
  unread = $state(0);
  /** Counts what was told or marked, here or on another page: whoever shows a list reads it again. */
  changes = $state(0);
  /** The newest one that is known of; nothing is new before the first reading. */
  #latest: number | undefined;

  /** Follows the live stream, and hands over what is new. */
  follow(hear: Hear): () => void {
    void this.#read();
    const stopHealing = live.healed(() => void this.#readFresh(hear));
    const stopHearing = live.hear((event) => {
      // Global admins hear of everybody's.
      if (event.subject !== session.person?.id) return;
      if (event.kind === 'notification.created') void this.#readFresh(hear);
      if (event.kind === 'notification.read') this.#counted((event.data as { unread: number }).unread);
    });
    return () => {
      stopHealing();
      stopHearing();
      this.unread = 0;
      this.#latest = undefined;
    };
  }

  async markRead(numbers: readonly number[]): Promise<void> {
    this.#counted((await call(api.POST('/me/notifications/read', { body: { numbers: [...numbers] } }))).unread);
  }

  async markUnread(numbers: readonly number[]): Promise<void> {
    this.#counted((await call(api.POST('/me/notifications/unread', { body: { numbers: [...numbers] } }))).unread);
  }

  /** All that was told so far, shown or not. */
  async markAllRead(): Promise<void> {
    if (this.#latest === undefined) return;
    this.#counted((await call(api.POST('/me/notifications/read', { body: { up_to: this.#latest } }))).unread);
  }

  #counted(unread: number): void {
    this.unread = unread;
    this.changes += 1;
  }

  async #readFresh(hear: Hear): Promise<void> {
    const before = this.#latest;
    const items = await this.#read();
    if (before !== undefined) hear(items.filter((one) => one.number > before && !one.read));
  }

  async #read(): Promise<readonly Notification[]> {
    try {
      const { items, unread } = await call(api.GET('/me/notifications', { params: { query: { limit: FRESH_MAX } } }));
      this.#latest = Math.max(this.#latest ?? 0, items[0]?.number ?? 0);
      this.#counted(unread);
      return items;
    } catch (thrown) {
      // The number is a courtesy; the page itself says why it cannot be read.
      asFailure(thrown);
      return [];
    }
  }
}

export const notifications = new Notifications();
