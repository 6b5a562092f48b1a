/**
 * The API's types by their names, and the few that its document cannot say yet.
 *
 * The rule of a series is written here until the pages that use it take it from the document.
 */
import type * as wire from './schema';

export type * from './schema';

/** The rule of a series, per RFC 5545. */
export type RepeatRule = string;

export type NewSeries = Omit<wire.NewSeries, 'rule'> & { readonly rule: RepeatRule };

export type Series = Omit<wire.Series, 'rule'> & { readonly rule: RepeatRule };
