import { describe, expect, it } from 'vitest';
import { HOUR } from '../time/span';
import { bandOfSteps, bandWork, fullestOf, nodeBands } from './bands';
import { makeClaims } from './claims';
import { lanesOn } from './lanes';
import { item, RACK, row } from './sample';
import { makeTree } from './tree';
import { stepsBeside, takenSpans, useBelow } from './use';
import { verdictOf } from './verdict';
import { timelineWords } from './words/en';

const run = (id: string, start: number, end: number, amount: number | null = 1) =>
  item(id, 'cpus', start, end, { kind: 'workload', amount, editable: false });
const cores = () => 64;

describe('runs that overlap', () => {
  const thirty = Array.from({ length: 30 }, (_, i) => run(`r${i}`, i, 100 + i));

  it('take one lane, however many there are', () => {
    const items = bandWork(thirty, cores);
    expect(items).toHaveLength(1);
    expect(items[0]!.band).toMatchObject({ count: 30, stepMs: null });
    expect(items[0]).toMatchObject({ start: 0, end: 129, title: null, editable: false });
    expect(fullestOf(items[0]!.band!)).toBeCloseTo(30 / 64);
    expect(lanesOn(makeClaims(items), 'cpus').count).toBe(1);
  });
  it('leave bookings the lanes of their own', () => {
    const bookings = [item('a', 'cpus', 10, 50, { amount: 4 }), item('b', 'cpus', 20, 60, { amount: 4 })];
    const items = bandWork([...thirty, ...bookings], cores);
    const lanes = lanesOn(makeClaims(items), 'cpus');
    expect(lanes.count).toBe(3);
    expect(lanes.laneOf.get('a')).toBe(0);
    expect(lanes.laneOf.get('b')).toBe(1);
    expect(lanes.laneOf.get(items.find(({ band }) => band)!.id)).toBe(2);
  });
  it('share a lane with bookings that they do not meet', () => {
    const items = bandWork([...thirty, item('later', 'cpus', 500, 600, { amount: 4 })], cores);
    expect(lanesOn(makeClaims(items), 'cpus').count).toBe(1);
  });
  it('stay themselves where they follow each other, and are counted at their most', () => {
    const apart = [run('a', 0, 10), run('b', 10, 20), run('c', 30, 40)];
    expect(bandWork(apart, cores).map(({ id }) => id)).toEqual(['a', 'b', 'c']);
    // Three in a chain, never more than two at once.
    const chain = bandWork([run('a', 0, 10), run('b', 5, 15), run('c', 12, 20)], cores);
    expect(chain.map(({ band }) => band?.count)).toEqual([2]);
    expect(chain[0]!.band!.levels.map(({ start, end }) => [start, end])).toEqual([[0, 5], [5, 10], [10, 12], [12, 15], [15, 20]]);
  });
  it('on different resources stay apart', () => {
    const two = [...thirty, ...thirty.map((one) => ({ ...one, id: `${one.id}n`, resource: 'n1' }))];
    expect(bandWork(two, () => null).map(({ resource }) => resource).sort()).toEqual(['cpus', 'n1']);
  });
});

describe('a node', () => {
  const on = (resource: string, id: string, start: number, end: number, amount: number | null = null) => ({ ...run(id, start, end, amount), resource });
  const tree = makeTree([row('node'), row('cores', 'node', { capacity: { amount: 64, unit: 'cores' } }), row('gpu', 'node'), row('alone')]);

  it('has one item for all work in it, counted by the row with the most', () => {
    const many = Array.from({ length: 31 }, (_, i) => on('cores', `c${i}`, 0, 100, 2));
    const items = [...many, on('gpu', 'g0', 0, 50), item('booked', 'gpu', 50, 80), on('alone', 'x', 0, 10)];
    const banded = bandWork(items, cores);
    const bands = nodeBands(banded, tree, makeClaims(items));
    expect(bands.map(({ resource, start, end, band }) => [resource, start, end, band!.count])).toEqual([['node', 0, 100, 31]]);
    // The booking of the GPU fills the node, too.
    expect(bands[0]!.band!.levels.map(({ start, share }) => [start, share.toFixed(3)])).toEqual([[0, '0.984'], [50, '0.984'], [80, '0.484']]);
    expect(lanesOn(makeClaims([...banded, ...bands]), 'node').count).toBe(1);
  });
  it('leaves the strip what lies beside its bands', () => {
    const step = (start: number, end: number) => ({ start, end, share: 0.5 });
    expect(stepsBeside([step(0, 10), step(20, 30), step(40, 90)], [{ start: 5, end: 25 }, { start: 50, end: 60 }])).toEqual([
      step(0, 5), step(25, 30), step(40, 50), step(60, 90),
    ]);
  });
  it('shows work that lies apart as two', () => {
    const apart = [on('gpu', 'a', 0, 10), on('gpu', 'b', 20, 30)];
    const bands = nodeBands(apart, tree, makeClaims(apart));
    expect(bands.map(({ start, end, band }) => [start, end, band!.count])).toEqual([[0, 10, 1], [20, 30, 1]]);
  });
});

describe('sums', () => {
  const step = (hour: number, share: number, isFull: boolean) => ({ start: hour * HOUR, end: (hour + 1) * HOUR, share, isFull, count: 7, mine: false });
  const band = bandOfSteps('n1', 'workload', HOUR, [step(1, 0.5, false), step(2, 1, true)]);
  const tree = makeTree([...RACK, row('spare')]);
  const claims = makeClaims([band]);
  const rules = { tree, claims, now: 0, words: timelineWords.verdict };

  it('stand for all of their time', () => {
    expect(band).toMatchObject({ start: HOUR, end: 3 * HOUR, band: { count: 7, stepMs: HOUR } });
    expect(takenSpans(band).map(({ start, end }) => [start / HOUR, end / HOUR])).toEqual([[2, 3]]);
  });
  it('are in the way only where they are full', () => {
    const at = (hour: number) => verdictOf({ resource: 'n1', start: hour * HOUR, end: (hour + 1) * HOUR }, null, rules).kind;
    expect([at(1), at(2), at(3)]).toEqual(['free', 'busy', 'free']);
    expect(verdictOf({ resource: 'g0', start: 2 * HOUR, end: 3 * HOUR }, null, rules).kind).toBe('blocked_by_parent');
  });
  it('count in what is in use below a row', () => {
    const { steps } = useBelow(tree.byId.get('rack')!, tree, claims, { start: 0, end: 4 * HOUR });
    expect(steps.map(({ start, share }) => [start / HOUR, Math.round(share * 3 * 10) / 10])).toEqual([[1, 1], [2, 2]]);
  });
});
