/** The booking that is being asked for beside the view: drawn on it, found elsewhere, or begun with nothing. */
import type { AlternativePart, Resource } from '../../api/types';
import { BookingDraft } from '../../booking/draft.svelte';
import { readWish, type Wishing } from '../../booking/wish';
import { catalogueOf } from '../../data/catalogue.svelte';
import { shown } from '../../data/shown.svelte';
import { ms } from '../../i18n/format';
import { router } from '../../routing/router.svelte';
import { snap } from '../../time/snap';
import { HOUR, type Span } from '../../time/span';
import type { Draft } from '../../timeline/types';
import { readRange } from './window';

/** The parts of an address that say what to book; gone once it is begun. */
const BEGUN = { book: null, start: null, end: null, what: null, count: null, for: null, or: null, earliest: null, before: null, having: null, amount: null };

export function nextHour(): Span {
  const start = snap(Date.now(), HOUR, shown.zone, 'up');
  return { start, end: start + 2 * HOUR };
}

export class Drafting {
  draft = $state.raw<BookingDraft | null>(null);

  /** What is told when another booking is begun: nothing else is open then. */
  constructor(readonly onbegin: () => void) {}

  /** As the view draws it; any of a kind has no place yet. */
  get drawn(): Draft | null {
    const { draft } = this;
    return draft && draft.by === 'name' ? { resource: draft.resources[0]?.id ?? null, start: draft.start, end: draft.end } : null;
  }

  close(): void {
    this.draft = null;
  }

  byName(site: string, names: readonly string[], span: Span = nextHour()): void {
    const next = new BookingDraft(site, catalogueOf(site));
    for (const name of names) next.add(name);
    next.start = span.start;
    next.end = span.end;
    this.#begin(next);
  }

  byKind(site: string, wish: Wishing): void {
    const next = new BookingDraft(site, catalogueOf(site));
    const { start, end } = nextHour();
    next.by = 'kind';
    next.wish = wish;
    next.start = wish.earliest ?? start;
    next.end = wish.before ?? end;
    this.#begin(next);
  }

  /** Drawing again while the panel is open means "rather there". */
  draw(drawn: Draft, resource: Resource | undefined, site: string): void {
    const { draft } = this;
    if (draft && draft.site === site && draft.by === 'name' && resource && draft.wanted.length <= 1) {
      draft.wanted = [{ name: resource.name, amount: resource.capacity ? (draft.wanted[0]?.amount ?? 1) : null }];
      draft.start = drawn.start;
      draft.end = drawn.end;
    } else this.byName(site, resource ? [resource.name] : [], drawn);
  }

  /** An alternative in another site, with the words that were already written. */
  elsewhere(part: AlternativePart): void {
    const title = this.draft?.title ?? '';
    this.byName(part.site.name, part.resources.map(({ name }) => name), { start: ms(part.start), end: ms(part.end) });
    if (this.draft) this.draft.title = title;
  }

  /** `?book=gpu-01&start=…&end=…` and `?what=gpu&for=2h` come from the command palette, "find me" and a resource's page. */
  fromAddress(sites: readonly string[]): void {
    const names = router.queryAll('book');
    const site = sites.find((one) => catalogueOf(one).byName.has(names[0] ?? '')) ?? sites[0];
    if (!site) return;
    const span = readRange(router.query('start'), router.query('end')) ?? nextHour();
    const wish = readWish(router.address.query);
    router.setQuery(BEGUN);
    if (names.length > 0) this.byName(site, names, span);
    else this.byKind(site, wish);
  }

  #begin(next: BookingDraft): void {
    this.onbegin();
    this.draft = next;
  }
}
