// The days of a month as it hangs on the wall: whole weeks, from the locale's first day.

import { firstDayOfWeek } from '../time/locale';
import type { Span } from '../time/span';
import { addMonths, nextDay, startOfMonth, startOfWeek } from '../time/zone';

export interface MonthDay extends Span {
  /** Days before and after the month complete its weeks. */
  readonly isInMonth: boolean;
}

/** The weeks that the month meets in which the range begins. */
export function weeksOf(range: Span, zone: string, locale: string): MonthDay[][] {
  const first = startOfMonth(range.start, zone);
  const after = addMonths(first, 1, zone);
  const weeks: MonthDay[][] = [];
  for (let day = startOfWeek(first, zone, firstDayOfWeek(locale)); day < after; ) {
    const week: MonthDay[] = [];
    for (let i = 0; i < 7; i++) {
      const end = nextDay(day, zone);
      week.push({ start: day, end, isInMonth: day >= first && day < after });
      day = end;
    }
    weeks.push(week);
  }
  return weeks;
}
