/** What a board shows of its sites: their resources as rows, what occupies them as items, and what their policies make of a wish. */
import { api, call } from '../../api/client';
import type { PolicyVersion } from '../../api/types';
import { breachOf, limitsFor } from '../../booking/limits';
import { catalogueOf, type Catalogue } from '../../data/catalogue.svelte';
import { keepFresh } from '../../data/loaded.svelte';
import { session } from '../../data/session.svelte';
import { shown } from '../../data/shown.svelte';
import { sites } from '../../data/sites.svelte';
import { i18n } from '../../i18n/i18n.svelte';
import type { Draft, Id, Item, Row } from '../../timeline/types';
import { CalendarOf } from './calendar.svelte';
import { rowTest, takenAt, type RowFilter } from './filter';
import { itemOf, rowsOf, siteRow, summaryItems, waitingItems } from './rows';

const mayBookIn = (site: string) => session.isMember(site) || session.isGlobalAdmin;

const WORK_CALM_MS = 5_000;
/** Sums change little from one run to the next, and the server reads every claim for them. */
const SUM_CALM_MS = 60_000;

/** Made by a component, with which it ends. */
export class Contents {
  readonly calendar = new CalendarOf();
  readonly #names: () => readonly string[];
  readonly #filter: () => RowFilter;
  #policies = $state.raw<ReadonlyMap<string, readonly PolicyVersion[]>>(new Map());

  readonly #catalogues = $derived.by(() => this.#names().map((name) => catalogueOf(name)));
  readonly isLoaded = $derived.by(() => this.#catalogues.every((catalogue) => catalogue.isLoaded));
  readonly failure = $derived.by(() => this.#catalogues.find((catalogue) => catalogue.failure)?.failure ?? this.calendar.failure);
  readonly resources = $derived.by(() => this.#catalogues.flatMap((catalogue) => catalogue.resources));
  readonly resourceById = $derived.by(() => new Map(this.resources.map((resource) => [resource.id, resource])));
  readonly types = $derived.by(() => this.#catalogues.flatMap((catalogue) => catalogue.types));
  /** Where a booking begins that names nothing yet. */
  readonly bookableSite = $derived.by(() => this.#names().find(mayBookIn));
  readonly rows = $derived.by(() => this.#catalogues.flatMap((catalogue) => this.#rowsIn(catalogue)));
  readonly items = $derived.by(() => this.#allItems());
  readonly test = $derived.by(() => {
    const filter = this.#filter();
    return rowTest(filter, this.resourceById, filter.freeNow ? takenAt(shown.now, this.rows, this.items) : new Set<Id>());
  });

  // A calendar has no rows to hide, so what is filtered out is left out.
  readonly wantedRows = $derived.by(() => (this.test ? this.rows.filter(this.test) : this.rows));
  readonly wantedItems = $derived.by(() => {
    if (!this.test) return this.items;
    const ids = new Set(this.wantedRows.map((row) => row.id));
    return this.items.filter((item) => ids.has(item.resource));
  });

  constructor(names: () => readonly string[], filter: () => RowFilter) {
    this.#names = names;
    this.#filter = filter;
    $effect(() => {
      for (const site of names()) void this.#readPolicies(site);
    });
    keepFresh(
      { families: ['reservation', 'maintenance', 'series', 'resource', 'claim'], site: () => (names().length === 1 ? names()[0] : undefined) },
      () => this.reload(),
    );
    // Something of a busy queue always begins or ends, and a calendar is much to read.
    const calendar = this.calendar;
    const work = {
      families: ['workload'],
      site: () => (names().length === 1 ? names()[0] : undefined),
      get calmMs() {
        return calendar.summaries.size > 0 ? SUM_CALM_MS : WORK_CALM_MS;
      },
    };
    keepFresh(work, () => this.reload());
  }

  reload(): void {
    void this.calendar.reload(this.#names());
  }

  siteOf(resource: Id): string | undefined {
    return this.resourceById.get(resource)?.site.name;
  }

  /** What the policies would refuse of a wish, in words; the server has the last one. */
  readonly judge = (wish: Draft): string | null => {
    const resource = wish.resource ? this.resourceById.get(wish.resource) : undefined;
    if (!resource) return null;
    const role = session.isAdmin(resource.site.name) ? 'site_admin' : 'member';
    const limits = limitsFor(this.#policies.get(resource.site.name) ?? [], resource.type.name, role);
    const breach = breachOf(limits, wish, Date.now());
    return breach && i18n.t.limits[breach.kind](shown.format.length(breach.limit));
  };

  async #readPolicies(site: string): Promise<void> {
    try {
      const list = await call(api.GET('/sites/{site}/policies', { params: { path: { site } } }));
      this.#policies = new Map(this.#policies).set(site, list.items);
    } catch {
      // Without them a drag is judged by the server alone.
    }
  }

  #rowsIn({ site, resources, types }: Catalogue): Row[] {
    if (this.#names().length === 1) return rowsOf(resources, types, mayBookIn(site), null);
    const root = `site:${site}`;
    return [siteRow(root, site, sites.named(site)?.title ?? ''), ...rowsOf(resources, types, mayBookIn(site), root)];
  }

  #allItems(): Item[] {
    const names = this.#names();
    const words = i18n.t.state;
    const occupying = names.flatMap((name) => {
      const viewer = { isAdmin: session.isAdmin(name), stateWords: words };
      return (this.calendar.entries.get(name) ?? []).map((entry) => itemOf(entry, viewer));
    });
    const capacityOf = (id: Id) => this.resourceById.get(id)?.capacity?.amount ?? null;
    const summed = names.flatMap((name) => {
      const summary = this.calendar.summaries.get(name);
      return summary ? summaryItems(summary, capacityOf) : [];
    });
    const waiting = this.calendar.waiting.filter((one) => names.includes(one.site.name));
    return [...occupying, ...summed, ...waiting.flatMap((one) => waitingItems(one, words.waiting))];
  }
}
