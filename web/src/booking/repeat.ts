/** How a booking repeats, as a person chooses it and as RFC 5545 writes it. */

export type Frequency = 'day' | 'week' | 'month';

export interface Repeat {
  readonly every: Frequency;
  readonly interval: number;
  /** Days of the week, 1 is Monday; only where it repeats by weeks. */
  readonly days: readonly number[];
  readonly end: { readonly count: number } | { readonly until: string };
}

const FREQ: Record<Frequency, string> = { day: 'DAILY', week: 'WEEKLY', month: 'MONTHLY' };
const DAYS = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'] as const;

/** The rule. A last day is meant whole, as people mean it: `UNTIL` is written as a date. */
export function toRule(repeat: Repeat): string {
  const parts = [`FREQ=${FREQ[repeat.every]}`];
  if (repeat.interval > 1) parts.push(`INTERVAL=${repeat.interval}`);
  if (repeat.every === 'week' && repeat.days.length > 0) {
    const days = [...repeat.days].sort((a, b) => a - b).map((day) => DAYS[day - 1]);
    parts.push(`BYDAY=${days.join(',')}`);
  }
  parts.push('count' in repeat.end ? `COUNT=${repeat.end.count}` : `UNTIL=${repeat.end.until.replaceAll('-', '')}`);
  return parts.join(';');
}
