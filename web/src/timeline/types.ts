// What the timeline and the calendar views are told, and what they tell back. The pages follow this contract; the
// components know nothing of the API.

import type { Units } from '../time/format';
import type { Span } from '../time/span';

export type Id = string;

/** What counts for a resource: the worst of its own status and those above it. */
export type Status = 'active' | 'maintenance' | 'unavailable';

/** A resource. Rows may come in any order; the tree is made from `parent`, and siblings keep the order they came in. */
export interface Row {
  readonly id: Id;
  readonly parent: Id | null;
  readonly name: string;
  readonly title: string | null;
  readonly typeId: Id;
  /** The type's own title: `GPU node`. */
  readonly typeTitle: string;
  /** The type's colour, `#rrggbb`. It is only ever shown beside the type's or the resource's name. */
  readonly colour: string;
  readonly status: Status;
  readonly statusReason: string | null;
  /** How much there is to share; null for a resource that is taken whole. */
  readonly capacity: Capacity | null;
  /** Whether the one who looks may book it at all, as far as the page knows. */
  readonly bookable: boolean;
}

export interface Capacity {
  readonly amount: number;
  readonly unit: string;
}

/**
 * - `booking`: a reservation that may be seen
 * - `busy`: taken, and no more may be told
 * - `maintenance`: a window of the site
 * - `hold`: kept free for two minutes
 * - `buffer`: set up or cleaned up for a booking
 * - `waiting`: on the waitlist; the only kind that takes nothing
 * - `workload`: work of the queue that runs
 */
export type ItemKind = 'booking' | 'busy' | 'maintenance' | 'hold' | 'buffer' | 'waiting' | 'workload';

/** One claim on one resource's time. */
export interface Item extends Span {
  readonly id: Id;
  readonly resource: Id;
  readonly kind: ItemKind;
  /** The reservation or window it belongs to. One with several resources has several items, which move together in time. */
  readonly booking: Id | null;
  readonly title: string | null;
  /** Whose it is, in words; null where that may not be told. */
  readonly owner: string | null;
  readonly mine: boolean;
  /** In words, as it is to be shown: `confirmed`, `waits for approval`. */
  readonly state: string | null;
  /** Not settled yet: shown with a dashed edge. */
  readonly tentative: boolean;
  /** How much of a shared resource; null where all of it is taken. */
  readonly amount: number | null;
  /** Whether the one who looks may move it and change its length. */
  readonly editable: boolean;
  /** Set where the item stands for several claims. */
  readonly band?: Band;
}

/** Several claims of one resource, drawn as one. */
export interface Band {
  /** The most of them at one moment; of sums, in one step. */
  readonly count: number;
  /** How long a step is; null where the claims are known one by one. */
  readonly stepMs: number | null;
  /** What they take, in order. */
  readonly levels: readonly Level[];
}

export interface Level extends Span {
  /** How much of the resource is taken, from 0 to 1; of sums, the most at one moment. */
  readonly share: number;
  /** Whether nothing is left at any moment. */
  readonly isFull: boolean;
}

/** A booking that is being made, moved or given another length. */
export interface Draft extends Span {
  /** Null in a calendar without a chosen resource: the page asks for it. */
  readonly resource: Id | null;
  /** How much of a shared resource; null for all of it, or where that is not known yet. */
  readonly amount?: number | null;
}

/** What the rule says of a draft, as far as the loaded items show. The server decides. */
export type Verdict =
  | { readonly kind: 'free'; /** Of a shared resource: how much is left all through. */ readonly left: number | null }
  | { readonly kind: 'busy'; readonly by: Item }
  | { readonly kind: 'blocked_by_parent'; readonly row: Row; readonly by: Item }
  | { readonly kind: 'blocked_by_child'; readonly row: Row; readonly by: Item }
  | { readonly kind: 'not_allowed'; readonly why: string };

/** What a page adds to the rule: policies, rights. Null, or why not, in a sentence. */
export type Judge = (draft: Draft, item: Item | null) => string | null;

export interface Callbacks {
  /** A draft was drawn; the page asks for the rest beside it, and keeps it in `draft` while it asks. */
  onbook?: (draft: Draft) => void;
  onmove?: (item: Item, draft: Draft) => void;
  /** The start or the end changed; the resource is the same. */
  onextend?: (item: Item, draft: Draft) => void;
  /** An item was chosen; `anchor` is its element, to put a panel beside. */
  onopen?: (item: Item, anchor: HTMLElement) => void;
  /** The time that is seen, after every zoom or pan. */
  onrange?: (range: Span) => void;
}

export interface ViewProps extends Callbacks {
  readonly rows: readonly Row[];
  readonly items: readonly Item[];
  /** The time that is to be seen. */
  readonly range: Span;
  readonly zone: string;
  readonly locale: string;
  readonly labels: Labels;
  /** A draft that the page is asking about; drawn until the page takes it away. */
  readonly draft?: Draft | null;
  readonly judge?: Judge;
  /** The policy's step for starts, if it has one. */
  readonly step?: number | null;
  /** The length of a booking that begins with a click. */
  readonly usualLength?: number;
  /** Whether anything can be booked, moved or extended here. */
  readonly readonly?: boolean;
}

export interface TimelineProps extends ViewProps {
  readonly folded: ReadonlySet<Id>;
  /** Rows to be shown, with all those above them; all, if left out. */
  readonly filter?: ((row: Row) => boolean) | null;
  ontogglefold?: (row: Row, folded: boolean) => void;
  onopenrow?: (row: Row, anchor: HTMLElement) => void;
}

export interface CalendarProps extends ViewProps {
  /** What a new booking is for; left out where the page asks. */
  readonly resource?: Id | null;
  /** A day was chosen, by its start: the page shows it. */
  onopenday?: (day: number) => void;
}

/** All words of the timeline and the calendar views. */
export interface Labels {
  readonly units: Units;
  readonly timeline: string;
  readonly calendar: string;
  readonly resources: string;
  readonly time: string;
  readonly today: string;
  readonly earlier: string;
  readonly later: string;
  readonly zoomIn: string;
  readonly zoomOut: string;
  readonly jumpTo: string;
  readonly fold: (name: string) => string;
  readonly unfold: (name: string) => string;
  readonly status: Record<Status, string>;
  readonly kind: Record<ItemKind, string>;
  /** Of what is drawn as one: how many they are, and how much they take of what there is. */
  readonly band: {
    readonly count: (count: number, kind: ItemKind) => string;
    readonly perStep: (length: string) => string;
    readonly atOnce: string;
    readonly full: (share: number) => string;
  };
  /** After the title of one's own bookings. */
  readonly yours: string;
  /** Of the leaves below a row, how many are in use at present. */
  readonly useBelow: (used: number, all: number) => string;
  readonly amount: (amount: number, unit: string) => string;
  readonly verdict: {
    readonly free: string;
    readonly left: (left: number, unit: string) => string;
    readonly busy: (what: string, until: string) => string;
    readonly blockedByParent: (row: string, what: string, until: string) => string;
    readonly blockedByChild: (row: string, what: string, until: string) => string;
    readonly inThePast: string;
    readonly hasBegun: string;
    readonly inMaintenance: (row: string) => string;
    readonly unavailable: (row: string) => string;
    readonly notBookable: (row: string) => string;
  };
  readonly says: {
    readonly creating: string;
    readonly moving: (what: string) => string;
    readonly extending: (what: string) => string;
    readonly gaveUp: string;
    readonly cannotEdit: (what: string) => string;
    readonly range: (range: string) => string;
    readonly keys: string;
  };
  readonly empty: { readonly noRows: string; readonly noItems: string };
  readonly more: (count: number) => string;
  /** Of today, what is over and folded away. */
  readonly over: (count: number) => string;
  readonly counts: {
    /** The word alone, beside a number that stands out. */
    readonly word: (count: number) => string;
    readonly bookings: (count: number) => string;
    readonly runs: (count: number) => string;
    readonly yours: (count: number) => string;
    readonly maintenance: (count: number) => string;
  };
  readonly openDay: (day: string) => string;
  /** Above the hours: what lasts a day or longer. */
  readonly long: string;
  readonly until: (moment: string) => string;
}
