import { describe, expect, it } from 'vitest';
import { HOUR } from '../time/span';
import { makeClaims } from './claims';
import { alongRows, alongTime, placeAt, toItem, type Cursor } from './cursor';
import { hourSteps, item, RACK } from './sample';
import { makeTree, visibleNodes } from './tree';

const at = (hours: number) => Date.parse('2026-11-16T00:00:00Z') + hours * HOUR;
const items = [item('a', 'n1', at(2), at(4)), item('b', 'n1', at(4), at(5)), item('odd', 'n1', at(8.3), at(8.5)), item('c', 'n2', at(2), at(9))];
const ground = { visible: visibleNodes(makeTree(RACK), new Set(), null), claims: makeClaims(items), steps: hourSteps() };
const empty = (hour: number, row = 'n1'): Cursor => ({ row, part: 'time', time: at(hour), item: null });

describe('arrows along time', () => {
  it('walk steps and items in order, there and back', () => {
    const walked: string[] = [];
    let cursor = empty(0);
    for (let i = 0; i < 9; i++) {
      cursor = alongTime(cursor, 1, ground);
      walked.push(cursor.item ?? String((cursor.time - at(0)) / HOUR));
    }
    expect(walked).toEqual(['1', 'a', 'b', '5', '6', '7', 'odd', '8.5', '9']);
    const back: string[] = [];
    for (let i = 0; i < 8; i++) {
      cursor = alongTime(cursor, -1, ground);
      back.push(cursor.item ?? String((cursor.time - at(0)) / HOUR));
    }
    expect(back).toEqual(['odd', '8', '7', '6', '5', 'b', 'a', '1']);
  });
  it('jump to the next item, and stay where there is none', () => {
    expect(toItem(empty(5), 1, ground).item).toBe('odd');
    expect(toItem(empty(5), -1, ground).item).toBe('b');
    expect(toItem(empty(20), 1, ground)).toEqual(empty(20));
  });
});

describe('arrows along rows', () => {
  it('keep the time, and land on what is there', () => {
    expect(alongRows(empty(3, 'g1'), 1, ground)).toMatchObject({ row: 'n2', item: 'c', time: at(3) });
    expect(alongRows({ row: 'n2', part: 'time', time: at(3), item: 'c' }, 1, ground)).toMatchObject({ row: 'cpus', item: null, time: at(3) });
  });
  it('stop at the ends, also by pages', () => {
    expect(alongRows(empty(0, 'cpus'), 1, ground).row).toBe('cpus');
    expect(alongRows(empty(0, 'rack'), -20, ground).row).toBe('rack');
  });
  it('stay on names', () => {
    expect(alongRows({ row: 'rack', part: 'name', time: at(3), item: null }, 1, ground)).toMatchObject({ row: 'n1', part: 'name' });
  });
  it('are placed on the step that holds a time', () => {
    expect(placeAt(empty(0), 'g0', at(6.7), ground)).toEqual(empty(6, 'g0'));
  });
});
