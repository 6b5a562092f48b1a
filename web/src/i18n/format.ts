/** Dates, times, lengths and numbers as a person of some language in some time zone reads them. */
import { dateFormat } from '../time/locale';
import { DAY, HOUR, MINUTE } from '../time/span';
import { startOfDay } from '../time/zone';

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
  constructor(
    readonly locale: string,
    readonly zone: string,
  ) {}

  time(moment: Moment): string {
    return this.#date({ hour: '2-digit', minute: '2-digit' }, moment);
  }

  /** "Mon 16 Nov". */
  day(moment: Moment): string {
    return this.#date({ weekday: 'short', day: 'numeric', month: 'short' }, moment);
  }

  /** "16 November 2026". */
  longDay(moment: Moment): string {
    return this.#date({ weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' }, moment);
  }

  month(moment: Moment): string {
    return this.#date({ month: 'long', year: 'numeric' }, moment);
  }

  dayAndTime(moment: Moment): string {
    return `${this.day(moment)}, ${this.time(moment)}`;
  }

  /** With the year, for what may lie far back. */
  full(moment: Moment): string {
    return `${this.#date({ day: 'numeric', month: 'short', year: 'numeric' }, moment)}, ${this.time(moment)}`;
  }

  date(moment: Moment): string {
    return this.#date({ day: 'numeric', month: 'short', year: 'numeric' }, moment);
  }

  /** "Mon 16 Nov, 09:00–12:00", and both days where it ends on another one. */
  span(start: Moment, end: Moment): string {
    const sameDay = startOfDay(ms(start), this.zone) === startOfDay(ms(end) - 1, this.zone);
    return sameDay
      ? `${this.day(start)}, ${this.time(start)}–${this.time(end)}`
      : `${this.dayAndTime(start)} – ${this.dayAndTime(end)}`;
  }

  /** "2 d 3 h 30 min", with the two largest units that say something. */
  length(milliseconds: number): string {
    const minutes = Math.round(milliseconds / MINUTE);
    const parts: [number, 'day' | 'hour' | 'minute'][] = [
      [Math.floor(minutes / 1440), 'day'],
      [Math.floor((minutes % 1440) / 60), 'hour'],
      [minutes % 60, 'minute'],
    ];
    const said = parts.filter(([count]) => count > 0).slice(0, 2);
    if (said.length === 0) return this.#unit(0, 'minute');
    return said.map(([count, unit]) => this.#unit(count, unit)).join(' ');
  }

  /** "in 3 hours", "2 days ago". */
  relative(moment: Moment, now: number): string {
    const away = ms(moment) - now;
    const format = new Intl.RelativeTimeFormat(this.locale, { numeric: 'auto', style: 'short' });
    for (const [unit, size] of RELATIVE_STEPS) {
      if (Math.abs(away) >= size) return format.format(Math.trunc(away / size), unit);
    }
    return format.format(0, 'minute');
  }

  number(value: number): string {
    return new Intl.NumberFormat(this.locale).format(value);
  }

  list(items: readonly string[]): string {
    return new Intl.ListFormat(this.locale, { type: 'conjunction' }).format(items);
  }

  /** "CET", "GMT+1". */
  zoneName(moment: Moment): string {
    const parts = dateFormat(this.locale, this.zone, { timeZoneName: 'short' }).formatToParts(ms(moment));
    return parts.find((part) => part.type === 'timeZoneName')?.value ?? this.zone;
  }

  weekday(isoDay: number, style: 'long' | 'short' = 'short'): string {
    // 5 January 2026 was a Monday.
    return dateFormat(this.locale, 'UTC', { weekday: style }).format(Date.UTC(2026, 0, 4 + isoDay));
  }

  #unit(count: number, unit: 'day' | 'hour' | 'minute'): string {
    return new Intl.NumberFormat(this.locale, { style: 'unit', unit, unitDisplay: 'short' }).format(count);
  }

  #date(options: Intl.DateTimeFormatOptions, moment: Moment): string {
    return dateFormat(this.locale, this.zone, options).format(ms(moment));
  }
}
