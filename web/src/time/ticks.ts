// The scale above a timeline: fine ticks and the wider bands that name what they are part of, for every zoom level.

import { dateFormat, firstDayOfWeek, isWeekend } from './locale';
import { DAY, HOUR, MINUTE, type Span } from './span';
import {
  addMonths, fromLocal, nextDay, startOfDay, startOfMonth, startOfWeek, startOfYear, toLocal, weekdayOf,
} from './zone';

export interface Tick {
  readonly time: number;
  readonly label: string;
  /** The start of what a band names: drawn as a stronger line. */
  readonly opensBand: boolean;
}

export interface Band extends Span {
  readonly label: string;
}

export interface Scale {
  readonly level: LevelName;
  readonly ticks: readonly Tick[];
  readonly bands: readonly Band[];
  /** Days of the weekend, to be shaded; empty where a day is too narrow to see. */
  readonly weekends: readonly Span[];
}

type Unit = number | 'week' | 'month';
type LevelName = '5min' | '15min' | '30min' | 'hour' | '3hours' | '6hours' | '12hours' | 'day' | 'week' | 'month';

interface Level {
  readonly name: LevelName;
  readonly unit: Unit;
  /** About how long the unit is, to compare scales. */
  readonly length: number;
  /** Room that a label needs. */
  readonly tickPxMin: number;
  readonly label: Intl.DateTimeFormatOptions;
  readonly band: 'day' | 'month' | 'year';
}

const CLOCK: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit' };
const HOUR_ONLY: Intl.DateTimeFormatOptions = { hour: '2-digit' };

const LEVELS: readonly Level[] = [
  { name: '5min', unit: 5 * MINUTE, length: 5 * MINUTE, tickPxMin: 46, label: CLOCK, band: 'day' },
  { name: '15min', unit: 15 * MINUTE, length: 15 * MINUTE, tickPxMin: 46, label: CLOCK, band: 'day' },
  { name: '30min', unit: 30 * MINUTE, length: 30 * MINUTE, tickPxMin: 46, label: CLOCK, band: 'day' },
  { name: 'hour', unit: HOUR, length: HOUR, tickPxMin: 26, label: HOUR_ONLY, band: 'day' },
  { name: '3hours', unit: 3 * HOUR, length: 3 * HOUR, tickPxMin: 26, label: HOUR_ONLY, band: 'day' },
  { name: '6hours', unit: 6 * HOUR, length: 6 * HOUR, tickPxMin: 26, label: HOUR_ONLY, band: 'day' },
  { name: '12hours', unit: 12 * HOUR, length: 12 * HOUR, tickPxMin: 34, label: HOUR_ONLY, band: 'day' },
  { name: 'day', unit: DAY, length: DAY, tickPxMin: 22, label: { day: 'numeric' }, band: 'month' },
  { name: 'week', unit: 'week', length: 7 * DAY, tickPxMin: 30, label: { day: 'numeric' }, band: 'month' },
  { name: 'month', unit: 'month', length: 30 * DAY, tickPxMin: 0, label: { month: 'short' }, band: 'year' },
];

const BAND_LABEL: Record<Level['band'], Intl.DateTimeFormatOptions> = {
  day: { weekday: 'short', day: 'numeric', month: 'short' },
  month: { month: 'long', year: 'numeric' },
  year: { year: 'numeric' },
};

/** Twelve-hour clocks write `10 AM`, which needs more room than `10`. */
const AM_PM_PX = 20;

function levelFor(msPerPx: number, locale: string): Level {
  const extra = usesAmPm(locale) ? AM_PM_PX : 0;
  const fits = (level: Level) => level.length / msPerPx >= level.tickPxMin + (level.band === 'day' ? extra : 0);
  return LEVELS.find(fits) ?? LEVELS.at(-1)!;
}

function usesAmPm(locale: string): boolean {
  return dateFormat(locale, 'UTC', { hour: 'numeric' }).resolvedOptions().hour12 === true;
}

export function scaleFor(span: Span, msPerPx: number, zone: string, locale: string): Scale {
  const level = levelFor(msPerPx, locale);
  const bands = bandsOf(span, level.band, zone, locale);
  const openings = new Set(bands.map((band) => band.start));
  const label = dateFormat(locale, zone, level.label);
  const ticks = tickTimes(span, level.unit, zone, locale).map((time) => ({
    time,
    label: label.format(time),
    opensBand: openings.has(time),
  }));
  return { level: level.name, ticks, bands, weekends: DAY / msPerPx >= 4 ? weekendsOf(span, zone, locale) : [] };
}

function tickTimes(span: Span, unit: Unit, zone: string, locale: string): number[] {
  if (unit === 'week') {
    return steps(startOfWeek(span.start, zone, firstDayOfWeek(locale)), span.end, (week) =>
      fromLocal(toLocal(week, zone) + 7 * DAY, zone),
    );
  }
  if (unit === 'month') return monthsOf(span, zone);
  const days = steps(startOfDay(span.start, zone), span.end, (day) => nextDay(day, zone));
  if (unit === DAY) return days;
  return days.flatMap((day) => (unit <= HOUR ? timesByLength(day, unit, zone) : timesByClock(day, unit, zone)));
}

/** Short ticks follow real time, so the hour that the clock shows twice gets both its ticks. */
function timesByLength(day: number, unit: number, zone: string): number[] {
  return steps(day, nextDay(day, zone), (time) => time + unit);
}

/** Long ticks follow the clock: noon stays noon in the night of the change. */
function timesByClock(day: number, unit: number, zone: string): number[] {
  const midnight = Math.floor(toLocal(day, zone) / DAY) * DAY;
  return steps(midnight, midnight + DAY, (local) => local + unit).map((local) => fromLocal(local, zone));
}

function bandsOf(span: Span, unit: Level['band'], zone: string, locale: string): Band[] {
  const label = dateFormat(locale, zone, BAND_LABEL[unit]);
  const starts = {
    day: () => steps(startOfDay(span.start, zone), span.end, (day) => nextDay(day, zone)),
    month: () => monthsOf(span, zone),
    year: () => steps(startOfYear(span.start, zone), span.end, (year) => addMonths(year, 12, zone)),
  }[unit]();
  const last = starts.at(-1)!;
  const after = { day: nextDay(last, zone), month: addMonths(last, 1, zone), year: addMonths(last, 12, zone) }[unit];
  return starts.map((start, i) => ({ start, end: starts[i + 1] ?? after, label: label.format(start) }));
}

function monthsOf(span: Span, zone: string): number[] {
  return steps(startOfMonth(span.start, zone), span.end, (month) => addMonths(month, 1, zone));
}

function weekendsOf(span: Span, zone: string, locale: string): Span[] {
  const days = steps(startOfDay(span.start, zone), span.end, (day) => nextDay(day, zone));
  return days
    .filter((day) => isWeekend(weekdayOf(day, zone), locale))
    .map((day) => ({ start: day, end: nextDay(day, zone) }));
}

function steps(first: number, end: number, next: (time: number) => number): number[] {
  const times: number[] = [];
  for (let time = first; time < end; time = next(time)) times.push(time);
  return times;
}
