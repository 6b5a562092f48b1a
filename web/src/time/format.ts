// Times in words, for one locale and one zone.

import { dateFormat } from './locale';
import { DAY, HOUR, MINUTE, type Span } from './span';
import { isShownTwice, startOfDay } from './zone';

/** Short names of units, which the language supplies. */
export interface Units {
  readonly day: string;
  readonly hour: string;
  readonly minute: string;
}

export interface TimeFormat {
  readonly locale: string;
  readonly zone: string;
  /** 14:05; with the zone's name in the hour that the clock shows twice. */
  time(instant: number): string;
  /** Mon 16 Nov */
  day(instant: number): string;
  /** Monday 16 November 2026 */
  dayLong(instant: number): string;
  /** November 2026 */
  month(instant: number): string;
  /** Mon 16 Nov 14:05 */
  moment(instant: number): string;
  /** Mon 16 Nov 09:00 – 12:00, or with both days where they differ. */
  span(span: Span): string;
}

const made = new Map<string, TimeFormat>();

export function timeFormat(locale: string, zone: string): TimeFormat {
  const key = `${locale} ${zone}`;
  let format = made.get(key);
  if (!format) made.set(key, (format = makeTimeFormat(locale, zone)));
  return format;
}

function makeTimeFormat(locale: string, zone: string): TimeFormat {
  const clock = dateFormat(locale, zone, { hour: '2-digit', minute: '2-digit' });
  const clockWithZone = dateFormat(locale, zone, { hour: '2-digit', minute: '2-digit', timeZoneName: 'short' });
  const day = dateFormat(locale, zone, { weekday: 'short', day: 'numeric', month: 'short' });
  const dayLong = dateFormat(locale, zone, { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });
  const month = dateFormat(locale, zone, { month: 'long', year: 'numeric' });

  const time = (instant: number) => (isShownTwice(instant, zone) ? clockWithZone : clock).format(instant);
  const moment = (instant: number) => `${day.format(instant)} ${time(instant)}`;
  return {
    locale,
    zone,
    time,
    moment,
    day: (instant) => day.format(instant),
    dayLong: (instant) => dayLong.format(instant),
    month: (instant) => month.format(instant),
    span({ start, end }) {
      // Midnight at the end still belongs to the day that it closes: 22:00 – 00:00 names one day.
      const endsSameDay = startOfDay(start, zone) === startOfDay(end - 1, zone);
      return `${moment(start)} – ${endsSameDay ? time(end) : moment(end)}`;
    },
  };
}

/** 3 d 4 h, 1 h 30 min, 45 min: the two largest units that say it exactly, or all three. */
export function formatLength(ms: number, units: Units): string {
  const minutes = Math.round(ms / MINUTE);
  const parts: [number, string][] = [
    [Math.floor((minutes * MINUTE) / DAY), units.day],
    [Math.floor(((minutes * MINUTE) % DAY) / HOUR), units.hour],
    [minutes % 60, units.minute],
  ];
  const said = parts.filter(([count]) => count > 0).map(([count, unit]) => `${count} ${unit}`);
  return said.length > 0 ? said.join(' ') : `0 ${units.minute}`;
}
