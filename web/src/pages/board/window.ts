/** The time that is seen, in the address bar and out of it. */
import type { Span } from '../../time/span';
import { DAY, HOUR } from '../../time/span';
import { firstDayOfWeek } from '../../time/locale';
import { addDays, addMonths, startOfDay, startOfMonth, startOfWeek } from '../../time/zone';

export const VIEWS = ['timeline', 'month', 'week', 'day', 'agenda'] as const;
export type View = (typeof VIEWS)[number];

export function isView(text: string): text is View {
  return (VIEWS as readonly string[]).includes(text);
}

/** How much a view shows around a moment, until somebody asks for more. */
export function usualRange(view: View, around: number, zone: string, locale: string): Span {
  if (view === 'month') {
    const start = startOfMonth(around, zone);
    return { start, end: addMonths(start, 1, zone) };
  }
  if (view === 'week') {
    const start = startOfWeek(around, zone, firstDayOfWeek(locale));
    return { start, end: addDays(start, 7, zone) };
  }
  const start = startOfDay(around, zone);
  const days = { day: 1, agenda: 7, timeline: 5 }[view];
  return { start, end: addDays(start, days, zone) };
}

/** `2026-11-16T08:00Z`: minutes are as exact as a view needs, and short enough to send to a colleague. */
export function writeMoment(moment: number): string {
  return `${new Date(moment).toISOString().slice(0, 16)}Z`;
}

export function readRange(from: string, to: string): Span | null {
  const span = { start: Date.parse(from), end: Date.parse(to) };
  return span.start < span.end && span.end - span.start < 800 * DAY ? span : null;
}

/** What to load for a view: more than is seen, so that a small pan shows no gap; whole days or hours, so that it stays the same for a while. */
export function loadedAround(range: Span): Span {
  const length = range.end - range.start;
  const unit = length < DAY ? HOUR : DAY;
  return {
    start: Math.floor((range.start - length / 2) / unit) * unit,
    end: Math.ceil((range.end + length / 2) / unit) * unit,
  };
}
