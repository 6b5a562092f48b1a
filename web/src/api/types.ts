/**
 * The API's types by their names, and the few that its document cannot say yet.
 *
 * Two names stand in docs/openapi.json for two things each: `Rule` (a rule of a policy, and the rule of a series) and `Choice`
 * (a choice of times, and what becomes of a booking in the way of maintenance). The generated types know only the first of
 * each; the second are written here.
 */
import type * as wire from './schema';

export type * from './schema';

/** The rule of a series, per RFC 5545. */
export type RepeatRule = string;

/** What becomes of a booking in the way of maintenance: the window goes around it, or it is cancelled. */
export type WayChoice = 'keep' | 'cancel';

export interface InTheWay {
  readonly booking: wire.CalendarEntry;
  readonly choice?: WayChoice | null;
}

export type MaintenancePreview = Omit<wire.MaintenancePreview, 'in_the_way'> & { readonly in_the_way: readonly InTheWay[] };

export type NewMaintenance = Omit<wire.NewMaintenance, 'in_the_way'> & {
  readonly in_the_way?: readonly { readonly reservation: string; readonly choice: WayChoice }[];
};

export type NewSeries = Omit<wire.NewSeries, 'rule'> & { readonly rule: RepeatRule };

export type Series = Omit<wire.Series, 'rule'> & { readonly rule: RepeatRule };
