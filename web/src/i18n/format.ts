/** Dates, times, lengths and numbers as a person of some language in some time zone reads them; from the API's texts, too. */
import { formatLength, timeFormat, type TimeFormat, type Units } from '../time/format';
import { dateFormat } from '../time/locale';
import { DAY, HOUR, MINUTE } from '../time/span';

export type Moment = number | string;

/** Moments come as milliseconds from the timeline and as texts from the API. */
export function ms(moment: Moment): number {
  return typeof moment === 'number' ? moment : Date.parse(moment);
}

const RELATIVE_STEPS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', DAY],
  ['hour', HOUR],
  ['minute', MINUTE],
];

export class Formats {
  readonly #times: TimeFormat;

  constructor(
    readonly locale: string,
    readonly zone: string,
    readonly units: Units,
  ) {
    this.#times = timeFormat(locale, zone);
  }

  time(moment: Moment): string {
    return this.#times.time(ms(moment));
  }

  /** "Mon 16 Nov". */
  day(moment: Moment): string {
    return this.#times.day(ms(moment));
  }

  dayAndTime(moment: Moment): string {
    return this.#times.moment(ms(moment));
  }

  /** With the year, for what may lie far back. */
  full(moment: Moment): string {
    return `${this.date(moment)}, ${this.time(moment)}`;
  }

  date(moment: Moment): string {
    return dateFormat(this.locale, this.zone, { day: 'numeric', month: 'short', year: 'numeric' }).format(ms(moment));
  }

  /** "Mon 16 Nov 09:00 – 12:00", and both days where it ends on another one. */
  span(start: Moment, end: Moment): string {
    return this.#times.span({ start: ms(start), end: ms(end) });
  }

  /** "2 d 3 h 30 min". */
  length(milliseconds: number): string {
    return formatLength(milliseconds, this.units);
  }

  /** "in 3 hours", "2 days ago". */
  relative(moment: Moment, now: number): string {
    const away = ms(moment) - now;
    const format = new Intl.RelativeTimeFormat(this.locale, { numeric: 'auto' });
    for (const [unit, size] of RELATIVE_STEPS) {
      if (Math.abs(away) >= size) return format.format(Math.trunc(away / size), unit);
    }
    return format.format(0, 'minute');
  }

  number(value: number): string {
    return value.toLocaleString(this.locale);
  }

  /** A share of one: "27 %". */
  percent(share: number, digits = 0): string {
    return share.toLocaleString(this.locale, { style: 'percent', maximumFractionDigits: digits });
  }

  list(items: readonly string[]): string {
    return new Intl.ListFormat(this.locale, { type: 'conjunction' }).format(items);
  }

  /** 1 is Monday. */
  weekday(isoDay: number, style: 'long' | 'short' = 'short'): string {
    // 5 January 2026 was a Monday.
    return dateFormat(this.locale, 'UTC', { weekday: style }).format(Date.UTC(2026, 0, 4 + isoDay));
  }
}
