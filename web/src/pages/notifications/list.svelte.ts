/** The notifications that are shown: the newest page, kept fresh, and older ones as they are asked for. */
import { api, call } from '../../api/client';
import { asFailure, type Failure } from '../../api/problem';
import type { EventKind, Notification } from '../../api/types';

const PAGE = 50;

export interface Filter {
  readonly unread: boolean;
  readonly kinds: readonly EventKind[];
}

export class NotificationList {
  items = $state.raw<readonly Notification[]>([]);
  failure = $state.raw<Failure | undefined>();
  isLoading = $state(true);
  isLoaded = $state(false);
  #next: string | null = $state(null);
  #turn = 0;

  get hasOlder(): boolean {
    return this.#next !== null;
  }

  /** From the beginning: when another filter is chosen. */
  async read(filter: Filter): Promise<void> {
    const page = await this.#ask(filter);
    if (!page) return;
    this.items = page.items;
    this.#next = page.next ?? null;
  }

  /** The newest again, without losing the older ones that were asked for. */
  async refresh(filter: Filter): Promise<void> {
    const page = await this.#ask(filter);
    if (!page) return;
    const oldest = page.items.at(-1)?.number ?? 0;
    const older = page.next ? this.items.filter((one) => one.number < oldest) : [];
    if (older.length === 0) this.#next = page.next ?? null;
    this.items = [...page.items, ...older];
  }

  async older(filter: Filter): Promise<void> {
    const page = await this.#ask(filter, this.#next ?? undefined);
    if (!page) return;
    this.items = [...this.items, ...page.items];
    this.#next = page.next ?? null;
  }

  /** The later question wins, whichever answer comes last. */
  async #ask(filter: Filter, cursor?: string) {
    const turn = ++this.#turn;
    this.isLoading = true;
    const query = { limit: PAGE, ...(filter.unread ? { unread: true } : {}), kind: [...filter.kinds], ...(cursor ? { cursor } : {}) };
    try {
      const page = await call(api.GET('/me/notifications', { params: { query } }));
      if (turn !== this.#turn) return undefined;
      this.failure = undefined;
      this.isLoaded = true;
      this.isLoading = false;
      return page;
    } catch (thrown) {
      if (turn !== this.#turn) return undefined;
      this.failure = asFailure(thrown);
      this.isLoading = false;
      return undefined;
    }
  }
}
