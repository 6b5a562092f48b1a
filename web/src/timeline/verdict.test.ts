import { describe, expect, it } from 'vitest';
import { HOUR, MINUTE } from '../time/span';
import { makeClaims } from './claims';
import { item, RACK, row } from './sample';
import { makeTree } from './tree';
import type { Draft, Item, Judge, Row } from './types';
import { verdictOf } from './verdict';
import { timelineWords } from './words/en';

function judged(draft: Draft, items: Item[], moved: Item | null = null, rows: readonly Row[] = RACK, judge?: Judge) {
  const rules = { tree: makeTree(rows), claims: makeClaims(items), now: 0, words: timelineWords.verdict, judge };
  return verdictOf(draft, moved, rules);
}

const draft = (resource: string, start: number, end: number, amount?: number): Draft => ({ resource, start, end, ...(amount ? { amount } : {}) });

describe('the rule along the tree', () => {
  it('is free beside, before and after', () => {
    expect(judged(draft('g0', 10, 20), [item('a', 'g1', 10, 20), item('b', 'g0', 0, 10), item('c', 'g0', 20, 30)])).toEqual({
      kind: 'free', left: null,
    });
  });
  it('is busy on the resource itself', () => {
    expect(judged(draft('g0', 10, 20), [item('a', 'g0', 19, 25)])).toMatchObject({ kind: 'busy', by: { id: 'a' } });
  });
  it('is blocked by any above', () => {
    expect(judged(draft('g0', 10, 20), [item('a', 'rack', 0, 11)])).toMatchObject({ kind: 'blocked_by_parent', row: { id: 'rack' } });
  });
  it('is blocked by any below', () => {
    expect(judged(draft('rack', 10, 20), [item('a', 'g1', 0, 11)])).toMatchObject({ kind: 'blocked_by_child', row: { id: 'g1' } });
  });
  it('lets those who wait wait', () => {
    expect(judged(draft('g0', 10, 20), [item('a', 'g0', 10, 20, { kind: 'waiting' })]).kind).toBe('free');
  });
  it('counts maintenance, holds, buffers and what is only busy', () => {
    for (const kind of ['maintenance', 'hold', 'buffer', 'busy'] as const) {
      expect(judged(draft('g0', 10, 20), [item('a', 'g0', 10, 20, { kind })]).kind).toBe('busy');
    }
  });
});

describe('a shared resource', () => {
  const shared = [item('a', 'cpus', 0, 20, { amount: 32 }), item('b', 'cpus', 20, 40, { amount: 60 })];

  it('says how much is left all through', () => {
    expect(judged(draft('cpus', 5, 15), shared)).toEqual({ kind: 'free', left: 32 });
    expect(judged(draft('cpus', 5, 25), shared)).toEqual({ kind: 'free', left: 4 });
    expect(judged(draft('cpus', 40, 50), shared)).toEqual({ kind: 'free', left: 64 });
  });
  it('is busy where less is left than wanted', () => {
    expect(judged(draft('cpus', 5, 25, 5), shared)).toMatchObject({ kind: 'busy', by: { id: 'b' } });
    expect(judged(draft('cpus', 5, 15, 32), shared).kind).toBe('free');
  });
  it('is busy where somebody has all of it', () => {
    expect(judged(draft('cpus', 5, 15), [item('a', 'cpus', 0, 20)]).kind).toBe('busy');
  });
});

describe('a booking that moves', () => {
  const moving = item('a', 'g0', 10, 20, { booking: 'rsv-1' });

  it('is not in its own way', () => {
    expect(judged(draft('g0', 15, 25), [moving, item('buf', 'g0', 20, 22, { kind: 'buffer', booking: 'rsv-1' })], moving).kind).toBe('free');
  });
  it('takes its other resources along', () => {
    const companion = item('b', 'n2', 10, 20, { booking: 'rsv-1' });
    expect(judged(draft('g0', 30, 40), [moving, companion, item('x', 'n2', 35, 36)], moving)).toMatchObject({ kind: 'busy', by: { id: 'x' } });
  });
  it('takes its buffers along', () => {
    const buffer = item('b', 'g0', 20, 25, { booking: 'rsv-1', kind: 'buffer' });
    expect(judged(draft('g0', 30, 40), [moving, buffer, item('x', 'g0', 44, 50)], moving)).toMatchObject({ kind: 'busy', by: { id: 'x' } });
    expect(judged(draft('g0', 30, 40), [moving, buffer, item('x', 'g0', 45, 50)], moving).kind).toBe('free');
  });
});

describe('what is not allowed', () => {
  it('is the past, but for a while one may still begin', () => {
    expect(judged(draft('g0', -20, -10), [])).toMatchObject({ kind: 'not_allowed' });
    expect(judged(draft('g0', -6 * MINUTE, 10), [])).toMatchObject({ kind: 'not_allowed' });
    expect(judged(draft('g0', -4 * MINUTE, 10), []).kind).toBe('free');
  });
  it('is another start of what has begun, but it may be extended', () => {
    const running = item('a', 'g0', -HOUR, 5);
    expect(judged(draft('g0', -HOUR, 10), [running], running).kind).toBe('free');
    expect(judged(draft('g0', 5, 10), [running], running)).toMatchObject({ why: timelineWords.verdict.hasBegun });
  });
  it('is what is out of order or not for me', () => {
    const rows = [row('m', null, { status: 'maintenance' }), row('u', null, { status: 'unavailable' }), row('n', null, { bookable: false })];
    const why = (id: string) => judged(draft(id, 1, 2), [], null, rows);
    expect(why('m')).toMatchObject({ why: 'Not allowed: m is in maintenance' });
    expect(why('u')).toMatchObject({ why: 'Not allowed: u is unavailable' });
    expect(why('n')).toMatchObject({ why: 'Not allowed: you may not book n' });
    const stays = item('a', 'm', 1, 2);
    expect(judged(draft('m', 1, 3), [stays], stays, rows).kind).toBe('free');
  });
  it('is what the page says', () => {
    const judge: Judge = (asked) => (asked.end - asked.start > 5 ? 'At most 5' : null);
    expect(judged(draft('g0', 1, 9), [], null, RACK, judge)).toEqual({ kind: 'not_allowed', why: 'At most 5' });
    expect(judged(draft('g0', 1, 3), [], null, RACK, judge).kind).toBe('free');
  });
});
