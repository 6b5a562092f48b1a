import { describe, expect, it } from 'vitest';
import { formatLength, timeFormat } from './format';
import { firstDayOfWeek, isWeekend } from './locale';
import { snap, stepFor } from './snap';
import { DAY, HOUR, MINUTE, overlaps, within } from './span';
import { scaleFor } from './ticks';
import {
  addDays, addMonths, daysBetween, daysOf, fromLocal, isShownTwice, nextDay, offsetAt, startOfDay, startOfMonth, startOfWeek, toLocal,
} from './zone';

const ROME = 'Europe/Rome';
const at = (iso: string) => Date.parse(iso);

// In 2026 Rome sets its clocks back on 25 October at 03:00, and in 2027 forward on 28 March at 02:00.
const BACK = at('2026-10-25T01:00:00Z');
const FORWARD = at('2027-03-28T01:00:00Z');

describe('spans', () => {
  it('touch without overlapping', () => {
    expect(overlaps({ start: 0, end: 5 }, { start: 5, end: 9 })).toBe(false);
    expect(overlaps({ start: 0, end: 6 }, { start: 5, end: 9 })).toBe(true);
  });
  it('are cut to bounds', () => {
    expect(within({ start: 0, end: 9 }, { start: 5, end: 20 })).toEqual({ start: 5, end: 9 });
    expect(within({ start: 0, end: 5 }, { start: 5, end: 20 })).toBeNull();
  });
});

describe('the clock of a zone', () => {
  it('changes its offset exactly at the change', () => {
    expect(offsetAt(BACK - 1, ROME)).toBe(2 * HOUR);
    expect(offsetAt(BACK, ROME)).toBe(HOUR);
    expect(offsetAt(FORWARD - 1, ROME)).toBe(HOUR);
    expect(offsetAt(FORWARD, ROME)).toBe(2 * HOUR);
  });
  it('reads a time that is shown twice as the first', () => {
    expect(fromLocal(Date.UTC(2026, 9, 25, 2, 30), ROME)).toBe(at('2026-10-25T00:30:00Z'));
    expect(isShownTwice(at('2026-10-25T00:30:00Z'), ROME)).toBe(true);
    expect(isShownTwice(at('2026-10-25T01:30:00Z'), ROME)).toBe(true);
    expect(isShownTwice(at('2026-10-25T02:00:00Z'), ROME)).toBe(false);
    expect(isShownTwice(at('2026-10-24T23:59:00Z'), ROME)).toBe(false);
  });
  it('reads a time that is left out as one after the change', () => {
    expect(fromLocal(Date.UTC(2027, 2, 28, 2, 30), ROME)).toBe(at('2027-03-28T01:30:00Z'));
    expect(toLocal(at('2027-03-28T01:30:00Z'), ROME)).toBe(Date.UTC(2027, 2, 28, 3, 30));
  });
  it('turns every hour of both nights there and back', () => {
    for (const change of [BACK, FORWARD]) {
      for (let time = change - 30 * HOUR; time < change + 30 * HOUR; time += 15 * MINUTE) {
        const again = fromLocal(toLocal(time, ROME), ROME);
        expect([time, time - HOUR]).toContain(again);
        if (!isShownTwice(time, ROME)) expect(again).toBe(time);
      }
    }
  });
  it('knows zones without daylight saving, with halves, and where midnight is left out', () => {
    expect(offsetAt(BACK, 'Asia/Kolkata')).toBe(5.5 * HOUR);
    expect(offsetAt(at('2026-10-03T15:29:59Z'), 'Australia/Lord_Howe')).toBe(10.5 * HOUR);
    expect(offsetAt(at('2026-10-03T15:30:00Z'), 'Australia/Lord_Howe')).toBe(11 * HOUR);
    // Cuba's clocks jump from 00:00 to 01:00 on 8 March 2026.
    const day = startOfDay(at('2026-03-08T18:00:00Z'), 'America/Havana');
    expect(new Date(toLocal(day, 'America/Havana')).toISOString()).toBe('2026-03-08T01:00:00.000Z');
    expect(daysBetween(day - 1, day, 'America/Havana')).toBe(1);
  });
});

describe('days, weeks and months', () => {
  it('are 25 and 23 hours long in the nights of the change', () => {
    const autumn = startOfDay(BACK, ROME);
    expect(nextDay(autumn, ROME) - autumn).toBe(25 * HOUR);
    const spring = startOfDay(FORWARD, ROME);
    expect(nextDay(spring, ROME) - spring).toBe(23 * HOUR);
  });
  it('keep the clock time over the change', () => {
    const saturdayNine = at('2026-10-24T07:00:00Z');
    expect(addDays(saturdayNine, 1, ROME)).toBe(at('2026-10-25T08:00:00Z'));
  });
  it('begin on the first day of the week', () => {
    const sunday = at('2026-11-15T12:00:00Z');
    expect(startOfWeek(sunday, ROME, 1)).toBe(at('2026-11-08T23:00:00Z'));
    expect(startOfWeek(sunday, ROME, 7)).toBe(at('2026-11-14T23:00:00Z'));
    expect(startOfWeek(BACK, ROME, 1)).toBe(at('2026-10-18T22:00:00Z'));
  });
  it('clamp to the last day of a shorter month', () => {
    expect(addMonths(at('2027-01-31T09:00:00Z'), 1, ROME)).toBe(at('2027-02-28T09:00:00Z'));
    expect(addMonths(at('2026-12-15T09:00:00Z'), 1, ROME)).toBe(at('2027-01-15T09:00:00Z'));
    expect(startOfMonth(at('2026-11-15T09:00:00Z'), ROME)).toBe(at('2026-10-31T23:00:00Z'));
  });
  it('are listed whole', () => {
    expect(daysOf({ start: BACK, end: BACK + 2 * DAY }, ROME)).toHaveLength(3);
    expect(daysOf({ start: startOfDay(BACK, ROME), end: nextDay(BACK, ROME) }, ROME)).toHaveLength(1);
  });
});

describe('snapping', () => {
  it('goes to the nearest, the last and the next step of the clock', () => {
    const time = at('2026-11-16T09:07:00Z');
    expect(snap(time, 15 * MINUTE, ROME)).toBe(at('2026-11-16T09:00:00Z'));
    expect(snap(time, 15 * MINUTE, ROME, 'up')).toBe(at('2026-11-16T09:15:00Z'));
    expect(snap(time, HOUR, 'Asia/Kolkata', 'down')).toBe(at('2026-11-16T08:30:00Z'));
    expect(snap(time, DAY, ROME, 'down')).toBe(at('2026-11-15T23:00:00Z'));
  });
  it('keeps the second of two equal hours apart from the first', () => {
    expect(snap(at('2026-10-25T00:50:00Z'), HOUR, ROME, 'up')).toBe(at('2026-10-25T01:00:00Z'));
    expect(snap(at('2026-10-25T01:50:00Z'), HOUR, ROME, 'down')).toBe(at('2026-10-25T01:00:00Z'));
    expect(snap(at('2026-10-25T01:10:00Z'), 15 * MINUTE, ROME)).toBe(at('2026-10-25T01:15:00Z'));
  });
  it('steps over the hour that is left out', () => {
    expect(snap(at('2027-03-28T00:50:00Z'), HOUR, ROME, 'up')).toBe(at('2027-03-28T01:00:00Z'));
    expect(snap(at('2027-03-28T00:50:00Z'), 3 * HOUR, ROME, 'up')).toBe(at('2027-03-28T01:00:00Z'));
    expect(snap(at('2027-03-28T00:50:00Z'), 6 * HOUR, ROME, 'up')).toBe(at('2027-03-28T04:00:00Z'));
  });
  it('never goes the wrong way, in both nights and for every step', () => {
    for (const change of [BACK, FORWARD]) {
      for (let time = change - 26 * HOUR; time < change + 26 * HOUR; time += 7 * MINUTE) {
        for (const step of [5 * MINUTE, 30 * MINUTE, HOUR]) {
          expect(snap(time, step, ROME, 'down')).toBeLessThanOrEqual(time);
          expect(snap(time, step, ROME, 'up')).toBeGreaterThanOrEqual(time);
          expect(snap(snap(time, step, ROME), step, ROME, 'down')).toBe(snap(time, step, ROME));
        }
      }
    }
  });
  it('ends a step that does not divide the day at midnight', () => {
    expect(snap(at('2026-11-16T22:30:00Z'), 7 * HOUR, ROME, 'up')).toBe(at('2026-11-16T23:00:00Z'));
  });
  it('takes a step that the pointer and the policy can both keep', () => {
    expect(stepFor(HOUR / 100)).toBe(5 * MINUTE);
    expect(stepFor(HOUR / 40)).toBe(10 * MINUTE);
    expect(stepFor(DAY / 140)).toBe(HOUR);
    expect(stepFor(DAY / 30)).toBe(6 * HOUR);
    expect(stepFor(HOUR / 100, 30 * MINUTE)).toBe(30 * MINUTE);
    expect(stepFor(HOUR / 100, 45 * MINUTE)).toBe(3 * HOUR);
    expect(stepFor(HOUR / 100, 7 * MINUTE)).toBe(7 * MINUTE);
    expect(stepFor(DAY)).toBe(DAY);
  });
});

describe('the scale', () => {
  const week = { start: at('2026-10-18T22:00:00Z'), end: at('2026-10-25T23:00:00Z') };

  it('shows days and their quarters in a week', () => {
    const scale = scaleFor(week, (7 * DAY) / 1000, ROME, 'it');
    expect(scale.level).toBe('6hours');
    expect(scale.bands.map((band) => band.label)).toEqual([
      'lun 19 ott', 'mar 20 ott', 'mer 21 ott', 'gio 22 ott', 'ven 23 ott', 'sab 24 ott', 'dom 25 ott',
    ]);
    expect(scale.ticks.slice(-4).map((tick) => tick.label)).toEqual(['00', '06', '12', '18']);
    expect(scale.ticks.at(-3)!.time).toBe(at('2026-10-25T05:00:00Z'));
    expect(scale.weekends.map((day) => day.end - day.start)).toEqual([DAY, 25 * HOUR]);
  });
  it('ticks both equal hours, and not the missing one', () => {
    const autumn = scaleFor({ start: BACK - 3 * HOUR, end: BACK + 2 * HOUR }, HOUR / 60, ROME, 'it');
    expect(autumn.ticks.filter((tick) => tick.label === '02')).toHaveLength(2);
    const spring = scaleFor({ start: FORWARD - HOUR, end: FORWARD + 2 * HOUR }, HOUR / 60, ROME, 'it');
    expect(spring.ticks.filter((tick) => tick.label === '02')).toHaveLength(0);
  });
  it('grows coarser as more time is shown, and always has few ticks', () => {
    const levels = [1, 3, 7, 14, 31, 120, 400].map((days) => {
      const span = { start: BACK, end: BACK + days * DAY };
      const scale = scaleFor(span, (days * DAY) / 1000, ROME, 'it');
      expect(scale.ticks.length).toBeLessThan(60);
      return scale.level;
    });
    expect(levels).toEqual(['hour', '3hours', '6hours', '12hours', 'day', 'week', 'month']);
  });
  it('opens bands where they begin', () => {
    const scale = scaleFor({ start: at('2026-10-25T00:00:00Z'), end: at('2026-11-10T00:00:00Z') }, (16 * DAY) / 400, ROME, 'it');
    expect(scale.ticks.filter((tick) => tick.opensBand).map((tick) => tick.time)).toEqual([at('2026-10-31T23:00:00Z')]);
  });
});

describe('locales', () => {
  it('know the first day of the week and the weekend', () => {
    expect(firstDayOfWeek('it')).toBe(1);
    expect(firstDayOfWeek('en-US')).toBe(7);
    expect(isWeekend(7, 'it')).toBe(true);
    expect(isWeekend(5, 'it')).toBe(false);
  });
  it('write spans with one day or two', () => {
    const format = timeFormat('en-GB', ROME);
    expect(format.span({ start: at('2026-11-16T08:00:00Z'), end: at('2026-11-16T11:00:00Z') })).toBe('Mon 16 Nov 09:00 – 12:00');
    expect(format.span({ start: at('2026-11-16T21:00:00Z'), end: at('2026-11-16T23:00:00Z') })).toBe('Mon 16 Nov 22:00 – 00:00');
    expect(format.span({ start: at('2026-11-16T21:00:00Z'), end: at('2026-11-17T08:00:00Z') })).toBe(
      'Mon 16 Nov 22:00 – Tue 17 Nov 09:00',
    );
  });
  it('name the zone in the hour that is shown twice', () => {
    const format = timeFormat('en-GB', ROME);
    expect(format.time(at('2026-10-25T00:30:00Z'))).toBe('02:30 CEST');
    expect(format.time(at('2026-10-25T01:30:00Z'))).toBe('02:30 CET');
    expect(format.time(at('2026-10-25T02:30:00Z'))).toBe('03:30');
  });
  it('write lengths exactly', () => {
    const units = { day: 'd', hour: 'h', minute: 'min' };
    expect(formatLength(90 * MINUTE, units)).toBe('1 h 30 min');
    expect(formatLength(3 * DAY + 4 * HOUR, units)).toBe('3 d 4 h');
    expect(formatLength(25 * HOUR + 5 * MINUTE, units)).toBe('1 d 1 h 5 min');
    expect(formatLength(0, units)).toBe('0 min');
  });
});
