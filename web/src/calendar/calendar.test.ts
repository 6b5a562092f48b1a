import { describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../time/span';
import { nextDay, startOfDay } from '../time/zone';
import { item, RACK } from '../timeline/sample';
import { makeTree } from '../timeline/tree';
import { byDay, entriesOf, firstOf, namesOf, sumOf } from './entries';
import { columnOf, isLong, longBars, shareOfDay, timeAtShare } from './grid';
import { weeksOf } from './month';

const ROME = 'Europe/Rome';
const at = (iso: string) => Date.parse(iso);
const tree = makeTree(RACK);
const all = { start: 0, end: Number.MAX_SAFE_INTEGER };
const MONDAY = at('2026-11-15T23:00:00Z');
const hour = (hours: number) => MONDAY + hours * HOUR;
const day = { start: MONDAY, end: MONDAY + DAY };

describe('entries', () => {
  it('put the resources of one booking together, and leave out its buffers', () => {
    const entries = entriesOf(
      [
        item('b', 'n2', 10, 20, { booking: 'r1' }), item('a', 'n1', 10, 20, { booking: 'r1' }), item('c', 'g0', 5, 30, { booking: 'r2' }),
        item('x', 'n1', 20, 22, { booking: 'r1', kind: 'buffer' }),
      ],
      tree, all,
    );
    expect(entries.map(namesOf)).toEqual(['g0', 'n2 +1']);
  });
  it('put the resources of one workload together, though they come and go', () => {
    const work = { kind: 'workload', booking: 'job' } as const;
    const entries = entriesOf(
      [item('c', 'n1', 40, 50, work), item('a', 'n1', 10, 20, work), item('b', 'g0', 15, 30, work), item('d', 'g0', 30, 35, work)],
      tree, all,
    );
    expect(entries.map((entry) => [namesOf(entry), entry.start, entry.end])).toEqual([['n1 +1', 10, 35], ['n1', 40, 50]]);
  });
  it('keep what is only busy apart', () => {
    const busy = { kind: 'busy', booking: null } as const;
    expect(entriesOf([item('a', 'n1', 1, 2, busy), item('b', 'n2', 1, 2, busy)], tree, all)).toHaveLength(2);
  });
  it('stand on every day they meet, also the long day of the change', () => {
    const change = at('2026-10-25T12:00:00Z');
    const days = [startOfDay(change, ROME), nextDay(change, ROME)];
    const late = item('a', 'n1', days[1]! - HOUR, days[1]! + HOUR);
    const lists = byDay(entriesOf([late], tree, all), days, ROME, nextDay(days[1]!, ROME));
    expect(days.map((each) => lists.get(each)!.length)).toEqual([1, 1]);
  });
  it('leave room for one’s own', () => {
    const entries = entriesOf([1, 2, 3, 4].map((i) => item(`i${i}`, 'n1', i, i + 1, { mine: i === 4 })), tree, all);
    expect(firstOf(entries, 2).map((entry) => entry.item.id)).toEqual(['i1', 'i4']);
  });
  it('are summed', () => {
    const entries = entriesOf([item('a', 'n1', 1, 2, { mine: true }), item('b', 'n2', 1, 2, { kind: 'maintenance' }), item('c', 'g0', 1, 2), item('d', 'g0', 1, 2, { kind: 'workload', booking: 'j' })], tree, all);
    expect(sumOf(entries)).toEqual({ bookings: 2, runs: 1, mine: 1, maintenance: 1 });
  });
});

describe('a month', () => {
  it('hangs in whole weeks from the first day of the locale', () => {
    const november = { start: at('2026-11-10T00:00:00Z'), end: at('2026-11-11T00:00:00Z') };
    const italian = weeksOf(november, ROME, 'it');
    expect(italian).toHaveLength(6);
    expect(new Date(italian[0]![0]!.start).toISOString()).toBe('2026-10-25T23:00:00.000Z');
    expect(italian.flat().filter((each) => each.isInMonth)).toHaveLength(30);
    expect(weeksOf(november, ROME, 'en-US')).toHaveLength(5);
  });
  it('has its days of 23 and 25 hours', () => {
    const october = weeksOf({ start: at('2026-10-10T00:00:00Z'), end: 0 }, ROME, 'it').flat();
    expect(october.filter((each) => each.end - each.start === 25 * HOUR)).toHaveLength(1);
  });
});

describe('a grid of hours', () => {
  it('places by the clock, there and back', () => {
    expect(shareOfDay(hour(6), MONDAY, ROME)).toBe(0.25);
    expect(timeAtShare(MONDAY, 0.25, ROME)).toBe(hour(6));
    const autumn = startOfDay(at('2026-10-25T12:00:00Z'), ROME);
    expect(shareOfDay(timeAtShare(autumn, 0.75, ROME), autumn, ROME)).toBe(0.75);
    expect(timeAtShare(autumn, 0.75, ROME)).toBe(at('2026-10-25T17:00:00Z'));
  });
  it('puts overlapping entries beside each other and cuts them at midnight', () => {
    const entries = entriesOf([item('a', 'n1', hour(-5), hour(6)), item('b', 'n2', hour(3), hour(9)), item('c', 'g0', hour(12), hour(30))], tree, all);
    const { blocks, more } = columnOf(entries, day, ROME, 4);
    expect(more).toEqual([]);
    expect(blocks.map(({ top, bottom, left, right }) => [top, bottom, left, right])).toEqual([
      [0, 0.25, 0, 0.5], [0.125, 0.375, 0.5, 1], [0.5, 1, 0, 1],
    ]);
  });
  it('counts what has no room', () => {
    const crowd = Array.from({ length: 20 }, (_, i) => item(`i${i}`, 'n1', hour(8), hour(12)));
    const { blocks, more } = columnOf(entriesOf(crowd, tree, all), day, ROME, 4);
    expect(blocks).toHaveLength(3);
    expect(more).toMatchObject([{ count: 17, top: 8 / 24, bottom: 0.5, left: 0.75, right: 1 }]);
  });
  it('finds room for one’s own first', () => {
    const crowd = Array.from({ length: 9 }, (_, i) => item(`i${i}`, 'n1', hour(8), hour(12), { mine: i === 8 }));
    const { blocks } = columnOf(entriesOf(crowd, tree, all), day, ROME, 3);
    expect(blocks.map(({ entry, left }) => [entry.item.id, left])).toEqual([['i8', 0], ['i0', 1 / 3]]);
  });
  it('lays long ones over their days', () => {
    const days = [0, 1, 2].map((i) => ({ start: MONDAY + i * DAY, end: MONDAY + (i + 1) * DAY }));
    const entries = entriesOf([item('a', 'n1', hour(-30), hour(30)), item('b', 'n2', hour(26), hour(60))], tree, all);
    expect(entries.every(isLong)).toBe(true);
    expect(longBars(entries, days).map(({ from, to, lane }) => [from, to, lane])).toEqual([[0, 2, 0], [1, 3, 1]]);
  });
});
