import { describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../time/span';
import { drag, IDLE, type DragEvent, type DragState, type Outcome, type Press } from './drag';
import { hourSteps, item } from './sample';
import { makeSteps } from './steps';

const NINE = Date.parse('2026-11-16T09:00:00Z');
const at = (hours: number) => NINE + hours * HOUR;
const booked = item('a', 'n1', at(0), at(3));

/** One pixel is a minute. */
const px = (time: number) => (time - NINE) / MINUTE;

function run(events: DragEvent[], steps = hourSteps()): { state: DragState; outcome: Outcome } {
  let state: DragState = IDLE;
  let outcome: Outcome = { kind: 'none' };
  for (const event of events) [state, outcome] = drag(state, event, steps);
  return { state, outcome };
}

function press(time: number, more: Partial<Press> = {}): DragEvent {
  return { type: 'press', by: 'mouse', x: px(time), y: 0, point: { resource: 'n1', time }, grip: 'empty', item: null, click: 'book', ...more };
}

function move(time: number, resource = 'n1', y = 0): DragEvent {
  return { type: 'move', x: px(time), y, point: { resource, time } };
}

const release: DragEvent = { type: 'release' };

describe('a mouse', () => {
  it('draws a booking from empty time, in both directions', () => {
    const forth = run([press(at(0.2)), move(at(2.5)), release]);
    expect(forth.outcome).toMatchObject({ kind: 'book', draft: { resource: 'n1', start: at(0), end: at(3) } });
    const back = run([press(at(2.5)), move(at(0.2)), release]);
    expect(back.outcome).toMatchObject({ kind: 'book', draft: { start: at(0), end: at(3) } });
  });
  it('books the usual length with a click, though the hand trembles', () => {
    const { outcome } = run([press(at(0.2)), move(at(0.2) + 3 * MINUTE), release]);
    expect(outcome).toMatchObject({ kind: 'book', draft: { start: at(0), end: at(2) } });
  });
  it('begins now in the step that has begun', () => {
    const steps = { ...hourSteps(), earliest: at(0.25) };
    expect(run([press(at(0.1)), release], steps).outcome).toMatchObject({ draft: { start: at(0.25), end: at(2.25) } });
    expect(run([press(at(0.1)), move(at(2.5)), release], steps).outcome).toMatchObject({ draft: { start: at(0.25), end: at(3) } });
    expect(run([press(at(1.1)), release], steps).outcome).toMatchObject({ draft: { start: at(1) } });
  });
  it('keeps a new booking on the row where it began', () => {
    expect(run([press(at(0.2)), move(at(1.5), 'n2', 40), release]).outcome).toMatchObject({ draft: { resource: 'n1' } });
  });
  it('opens an item with a click', () => {
    expect(run([press(at(1), { grip: 'body', item: booked }), release]).outcome).toEqual({ kind: 'open', item: booked });
  });
  it('moves an item in time and to another row, with its length', () => {
    const { outcome } = run([press(at(1), { grip: 'body', item: booked }), move(at(3.1), 'n2', 40), release]);
    expect(outcome).toMatchObject({ kind: 'move', draft: { resource: 'n2', start: at(2), end: at(5) } });
  });
  it('leaves a time alone that does not lie on a step, when only the row changes', () => {
    const odd = item('odd', 'n1', at(0.25), at(1.25));
    const { outcome } = run([press(at(1), { grip: 'body', item: odd }), move(at(1.1), 'n2', 40), release]);
    expect(outcome).toMatchObject({ draft: { resource: 'n2', start: at(0.25), end: at(1.25) } });
    const later = run([press(at(1), { grip: 'body', item: odd }), move(at(3.1)), release]);
    expect(later.outcome).toMatchObject({ draft: { start: at(2.25), end: at(3.25) } });
  });
  it('changes the end and the start, and leaves at least one step', () => {
    const end = run([press(at(3), { grip: 'end', item: booked }), move(at(5.2)), release]);
    expect(end.outcome).toMatchObject({ kind: 'extend', draft: { resource: 'n1', start: at(0), end: at(5) } });
    const least = run([press(at(3), { grip: 'end', item: booked }), move(at(-4)), release]);
    expect(least.outcome).toMatchObject({ draft: { start: at(0), end: at(1) } });
    const start = run([press(at(0), { grip: 'start', item: booked }), move(at(9)), release]);
    expect(start.outcome).toMatchObject({ draft: { start: at(2), end: at(3) } });
  });
  it('changes nothing where it ends as it began', () => {
    expect(run([press(at(1), { grip: 'body', item: booked }), move(at(4)), move(at(1)), release]).outcome).toEqual({ kind: 'none' });
  });
  it('cannot drag what may not be changed', () => {
    const fixed = { ...booked, editable: false };
    const { state } = run([press(at(1), { grip: 'body', item: fixed }), move(at(4))]);
    expect(state.phase).toBe('pressed');
  });
  it('gives up', () => {
    expect(run([press(at(0)), move(at(2)), { type: 'giveUp' }])).toEqual({ state: IDLE, outcome: { kind: 'gaveUp' } });
  });
  it('keeps the same state while the snapped draft is the same', () => {
    const first = run([press(at(0)), move(at(1.5))]).state;
    expect(drag(first, move(at(1.6)), hourSteps())[0]).toBe(first);
  });
});

describe('a finger', () => {
  const touch = { by: 'touch', click: 'point' } as const;

  it('scrolls when it moves at once', () => {
    expect(run([press(at(0), touch), move(at(1))]).state).toEqual(IDLE);
  });
  it('drags after it has rested', () => {
    const { outcome } = run([press(at(0), touch), { type: 'held' }, move(at(3.5)), release]);
    expect(outcome).toMatchObject({ kind: 'book', draft: { start: at(0), end: at(4) } });
  });
  it('books the usual length when it rests and leaves', () => {
    expect(run([press(at(0.5), touch), { type: 'held' }, release]).outcome).toMatchObject({ draft: { start: at(0), end: at(2) } });
  });
  it('only points with a tap', () => {
    expect(run([press(at(0.5), touch), release]).outcome).toMatchObject({ kind: 'point' });
  });
});

describe('keys', () => {
  const draft = { resource: 'n1', start: at(0), end: at(1) };
  const right = (edge: 'start' | 'end' = 'end'): DragEvent => ({ type: 'nudge', by: 1, edge });
  const left = (edge: 'start' | 'end' = 'end'): DragEvent => ({ type: 'nudge', by: -1, edge });

  it('create: change both edges and the row', () => {
    const { outcome } = run([
      { type: 'begin', mode: 'create', item: null, draft }, right(), right(), right('start'), { type: 'toRow', resource: 'n2' }, release,
    ]);
    expect(outcome).toMatchObject({ kind: 'book', draft: { resource: 'n2', start: at(1), end: at(3) } });
  });
  it('never leave nothing', () => {
    expect(run([{ type: 'begin', mode: 'create', item: null, draft }, left(), release]).outcome).toMatchObject({ draft });
  });
  it('go by several steps at once', () => {
    const begun: DragEvent = { type: 'begin', mode: 'move', item: booked, draft: booked };
    expect(run([begun, { type: 'nudge', by: -24, edge: 'end' }, release]).outcome).toMatchObject({ draft: { start: at(-24), end: at(-21) } });
  });
  it('move and extend', () => {
    const begin = (mode: 'move' | 'resize-end'): DragEvent => ({ type: 'begin', mode, item: booked, draft: booked });
    expect(run([begin('move'), right(), release]).outcome).toMatchObject({ kind: 'move', draft: { start: at(1), end: at(4) } });
    expect(run([begin('resize-end'), right(), { type: 'toRow', resource: 'n2' }, release]).outcome).toMatchObject({
      kind: 'extend', draft: { resource: 'n1', start: at(0), end: at(4) },
    });
  });
  it('step over the hour that is left out and through the one that comes twice', () => {
    const steps = hourSteps('Europe/Rome');
    const spring = Date.parse('2027-03-28T00:00:00Z');
    const begun: DragEvent = { type: 'begin', mode: 'create', item: null, draft: { resource: 'n1', start: spring, end: spring + HOUR } };
    expect(run([begun, right(), release], steps).outcome).toMatchObject({ draft: { end: spring + 2 * HOUR } });
  });
  it('keep the time on the clock when they move by days over the change', () => {
    const days = makeSteps({ length: DAY, zone: 'Europe/Rome', earliest: 0, usualLength: HOUR });
    const nine = Date.parse('2026-10-24T07:00:00Z');
    const friday = item('f', 'n1', nine, nine + HOUR);
    const { outcome } = run([{ type: 'begin', mode: 'move', item: friday, draft: friday }, right(), release], days);
    expect(outcome).toMatchObject({ draft: { start: Date.parse('2026-10-25T08:00:00Z') } });
  });
  it('are not moved by the mouse', () => {
    const { state } = run([{ type: 'begin', mode: 'create', item: null, draft }, move(at(7))]);
    expect(state).toMatchObject({ draft });
  });
});
