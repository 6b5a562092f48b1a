// Spans of time: from a start up to, and without, an end. All times are milliseconds since 1970, UTC.

export interface Span {
  readonly start: number;
  readonly end: number;
}

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export function lengthOf(span: Span): number {
  return span.end - span.start;
}

export function overlaps(a: Span, b: Span): boolean {
  return a.start < b.end && b.start < a.end;
}

export function covers(outer: Span, inner: Span): boolean {
  return outer.start <= inner.start && inner.end <= outer.end;
}

export function holdsMoment(span: Span, time: number): boolean {
  return span.start <= time && time < span.end;
}

/** The part of `span` that lies within `bounds`, or null where they do not meet. */
export function within(span: Span, bounds: Span): Span | null {
  const start = Math.max(span.start, bounds.start);
  const end = Math.min(span.end, bounds.end);
  return start < end ? { start, end } : null;
}

export function shifted(span: Span, by: number): Span {
  return { start: span.start + by, end: span.end + by };
}
