/** Which time a page of figures is about, as it stands in the address: a calendar week, month or quarter, or days of one's own. */
import type { Bucket } from '../../api/types';
import { DAY, type Span } from '../../time/span';
import { addDays, addMonths, daysBetween, fromLocal, startOfMonth, startOfWeek, startOfYear, toLocal } from '../../time/zone';

export const KINDS = ['week', 'month', 'quarter', 'own'] as const;
export type Kind = (typeof KINDS)[number];

export interface Period {
  readonly kind: Kind;
  readonly span: Span;
}

/** What the server looks at in one question. */
export const MOST_DAYS = 400;

export interface Asked {
  readonly kind: string;
  /** A day within the week, month or quarter. */
  readonly at: string;
  readonly from: string;
  /** The last day, which counts. */
  readonly to: string;
}

/** The period that the address names; the month that holds `now`, where it names none or nonsense. */
export function periodOf(asked: Asked, now: number, zone: string): Period {
  const kind = KINDS.find((one) => one === asked.kind) ?? 'month';
  if (kind !== 'own') return { kind, span: calendarSpan(kind, parseDay(asked.at, zone) ?? now, zone) };
  const from = parseDay(asked.from, zone);
  const to = parseDay(asked.to, zone);
  const month = calendarSpan('month', now, zone);
  if (from === null || to === null || from > to) return { kind, span: month };
  const end = addDays(to, 1, zone);
  const longest = addDays(from, MOST_DAYS, zone);
  return { kind, span: { start: from, end: Math.min(end, longest) } };
}

/** The period before or after this one. */
export function neighbour({ kind, span }: Period, by: -1 | 1, zone: string): Span {
  if (kind === 'own') {
    const days = daysBetween(span.start, span.end, zone) * by;
    return { start: addDays(span.start, days, zone), end: addDays(span.end, days, zone) };
  }
  return calendarSpan(kind, by < 0 ? span.start - 1 : span.end, zone);
}

/** Fine enough to see a course, coarse enough to read it. */
export function bucketOf(span: Span): Bucket {
  const days = (span.end - span.start) / DAY;
  if (days <= 2.1) return 'hour';
  return days <= 45 ? 'day' : 'week';
}

function calendarSpan(kind: Exclude<Kind, 'own'>, instant: number, zone: string): Span {
  if (kind === 'week') {
    // The server's weeks begin on Monday, in every language.
    const start = startOfWeek(instant, zone, 1);
    return { start, end: addDays(start, 7, zone) };
  }
  const months = kind === 'month' ? 1 : 3;
  const start = kind === 'month' ? startOfMonth(instant, zone) : startOfQuarter(instant, zone);
  return { start, end: addMonths(start, months, zone) };
}

function startOfQuarter(instant: number, zone: string): number {
  return addMonths(startOfYear(instant, zone), quarterOf(instant, zone) * 3, zone);
}

/** Counted from 0. */
export function quarterOf(instant: number, zone: string): number {
  return Math.floor(new Date(toLocal(instant, zone)).getUTCMonth() / 3);
}

/** A day as the address and a date field write it. */
export function writeDay(instant: number, zone: string): string {
  return new Date(toLocal(instant, zone)).toISOString().slice(0, 10);
}

export function parseDay(text: string, zone: string): number | null {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return null;
  const local = Date.parse(`${text}T00:00:00Z`);
  return Number.isNaN(local) ? null : fromLocal(local, zone);
}
