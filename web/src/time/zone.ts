// The clock on the wall of a time zone, by the browser's own table of zones.
//
// A `local` number is what the clock shows, written as if that were UTC: 10:30 on 25 October 2026 in Rome is
// Date.UTC(2026, 9, 25, 10, 30). Days, weeks and months are counted on local numbers, where every day has 24 hours,
// and only the result is turned back into an instant. Daylight saving then has one home: `toLocal` and `fromLocal`.

import { DAY } from './span';

const clocks = new Map<string, Intl.DateTimeFormat>();
const offsetsByDay = new Map<string, Map<number, number>>();

/** What stands for a day in which the offset changes. */
const MIXED = Number.NaN;

function clockOf(zone: string): Intl.DateTimeFormat {
  let clock = clocks.get(zone);
  if (!clock) {
    clock = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    clocks.set(zone, clock);
  }
  return clock;
}

function askOffset(instant: number, zone: string): number {
  const [month, day, year, hour, minute, second] = clockOf(zone).format(instant).match(/\d+/g)!.map(Number) as [
    number, number, number, number, number, number,
  ];
  const shown = Date.UTC(year, month - 1, day, hour, minute, second);
  return shown - Math.floor(instant / 1000) * 1000;
}

/**
 * How far the zone's clock is ahead of UTC at an instant.
 *
 * Asking Intl costs microseconds and a timeline asks thousands of times, so the answer is kept for each UTC day that
 * begins and ends with the same offset. No zone changes its clock and changes it back within a day.
 */
export function offsetAt(instant: number, zone: string): number {
  let days = offsetsByDay.get(zone);
  if (!days) offsetsByDay.set(zone, (days = new Map()));
  const day = Math.floor(instant / DAY);
  let offset = days.get(day);
  if (offset === undefined) {
    const atStart = askOffset(day * DAY, zone);
    offset = atStart === askOffset((day + 1) * DAY, zone) ? atStart : MIXED;
    days.set(day, offset);
  }
  return Number.isNaN(offset) ? askOffset(instant, zone) : offset;
}

export function toLocal(instant: number, zone: string): number {
  return instant + offsetAt(instant, zone);
}

/**
 * The instant at which the zone's clock shows `local`. Of a time that the clock shows twice, the first; a time that it
 * leaves out is read with the offset before the change, so that 02:30 becomes 03:30.
 */
export function fromLocal(local: number, zone: string): number {
  const before = offsetAt(local - DAY, zone);
  const after = offsetAt(local + DAY, zone);
  if (before === after || offsetAt(local - before, zone) === before) return local - before;
  if (offsetAt(local - after, zone) === after) return local - after;
  return local - before;
}

/** Whether the clock shows this time twice, in the night in which it is set back: then the time alone does not say when. */
export function isShownTwice(instant: number, zone: string): boolean {
  const local = toLocal(instant, zone);
  const first = fromLocal(local, zone);
  const second = local - offsetAt(local + DAY, zone);
  return second !== first && toLocal(second, zone) === local;
}

function startOfLocalDay(local: number): number {
  return Math.floor(local / DAY) * DAY;
}

export function startOfDay(instant: number, zone: string): number {
  return fromLocal(startOfLocalDay(toLocal(instant, zone)), zone);
}

/** The same time on the clock, `count` days later. */
export function addDays(instant: number, count: number, zone: string): number {
  return fromLocal(toLocal(instant, zone) + count * DAY, zone);
}

/** 1 is Monday and 7 is Sunday, as Intl counts them. */
export function weekdayOf(instant: number, zone: string): number {
  return weekdayOfLocal(toLocal(instant, zone));
}

function weekdayOfLocal(local: number): number {
  return new Date(local).getUTCDay() || 7;
}

export function startOfWeek(instant: number, zone: string, firstDay: number): number {
  const day = startOfLocalDay(toLocal(instant, zone));
  const back = (weekdayOfLocal(day) - firstDay + 7) % 7;
  return fromLocal(day - back * DAY, zone);
}

export function startOfMonth(instant: number, zone: string): number {
  const date = new Date(toLocal(instant, zone));
  return fromLocal(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1), zone);
}

export function startOfYear(instant: number, zone: string): number {
  return fromLocal(Date.UTC(new Date(toLocal(instant, zone)).getUTCFullYear(), 0, 1), zone);
}

/** The same day of the month and time on the clock, `count` months later; the last day where there is no such day. */
export function addMonths(instant: number, count: number, zone: string): number {
  const local = toLocal(instant, zone);
  const date = new Date(local);
  const year = date.getUTCFullYear();
  const month = date.getUTCMonth() + count;
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const day = Math.min(date.getUTCDate(), lastDay);
  return fromLocal(Date.UTC(year, month, day) + (local - startOfLocalDay(local)), zone);
}

/** Days from `from` to `to` on the calendar, whatever the hours. */
export function daysBetween(from: number, to: number, zone: string): number {
  return (startOfLocalDay(toLocal(to, zone)) - startOfLocalDay(toLocal(from, zone))) / DAY;
}

/** The starts of all days that meet the span. */
export function daysOf(span: { start: number; end: number }, zone: string): number[] {
  const days: number[] = [];
  for (let day = startOfDay(span.start, zone); day < span.end; day = nextDay(day, zone)) days.push(day);
  return days;
}

/** The start of the day after the one that holds the instant. Not a day later: where midnight is left out, days begin at 01:00. */
export function nextDay(instant: number, zone: string): number {
  return fromLocal(startOfLocalDay(toLocal(instant, zone)) + DAY, zone);
}
