import { describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../time/span';
import { axisAround, canvasWidth, drawnWindow, partAt, SCREENS_ASIDE, timeAt, xOf, zoomed } from './axis';
import { makeClaims } from './claims';
import { inLanes } from './lanes';
import { layOut, rowAt, rowsNear } from './rows';
import { item, RACK, row } from './sample';
import { ancestorsOf, descendantsOf, makeTree, visibleNodes } from './tree';
import { usedBelow, useBelow, usePath } from './use';

const names = (nodes: Iterable<{ row: { id: string } }>) => [...nodes].map((node) => node.row.id);

describe('the tree', () => {
  const tree = makeTree(RACK);

  it('stands in order, with levels and places', () => {
    expect(names(tree.nodes)).toEqual(['rack', 'n1', 'g0', 'g1', 'n2', 'cpus']);
    expect(tree.nodes.map((node) => node.level)).toEqual([0, 1, 2, 2, 1, 0]);
    expect(tree.byId.get('n2')).toMatchObject({ position: 2, siblings: 2 });
  });
  it('knows what is above and below', () => {
    expect(names(ancestorsOf(tree.byId.get('g1')!))).toEqual(['n1', 'rack']);
    expect(names(descendantsOf(tree.byId.get('rack')!, tree))).toEqual(['n1', 'g0', 'g1', 'n2']);
    expect(names(descendantsOf(tree.byId.get('g0')!, tree))).toEqual([]);
  });
  it('hides what is folded away', () => {
    expect(names(visibleNodes(tree, new Set(['n1']), null))).toEqual(['rack', 'n1', 'n2', 'cpus']);
    expect(names(visibleNodes(tree, new Set(['rack', 'n1']), null))).toEqual(['rack', 'cpus']);
  });
  it('keeps those above a match', () => {
    expect(names(visibleNodes(tree, new Set(), (each) => each.id === 'g1'))).toEqual(['rack', 'n1', 'g1']);
    expect(names(visibleNodes(tree, new Set(['n1']), (each) => each.id === 'g1'))).toEqual(['rack', 'n1']);
    expect(visibleNodes(tree, new Set(), () => false)).toEqual([]);
  });
  it('puts a row at the top whose parent is not there', () => {
    expect(makeTree([row('lonely', 'gone')]).nodes[0]).toMatchObject({ level: 0, parent: null });
  });
});

describe('claims', () => {
  it('finds what meets a span, even what began long before', () => {
    const claims = makeClaims([
      item('c', 'n1', 50, 60), item('a', 'n1', 0, 100), item('b', 'n1', 10, 20), item('d', 'n1', 200, 300), item('x', 'n2', 55, 56),
    ]);
    expect(claims.within('n1', { start: 55, end: 58 }).map((each) => each.id)).toEqual(['a', 'c']);
    expect(claims.within('n1', { start: 100, end: 200 })).toEqual([]);
    expect(claims.within('n1', { start: 99, end: 201 }).map((each) => each.id)).toEqual(['a', 'd']);
    expect(claims.within('nowhere', { start: 0, end: 1 })).toEqual([]);
  });
  it('agrees with looking at every item', () => {
    let seed = 7;
    const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
    const items = Array.from({ length: 300 }, (_, i) => {
      const start = random(1000);
      return item(`i${i}`, 'n1', start, start + 1 + random(200));
    });
    const claims = makeClaims(items);
    for (let i = 0; i < 200; i++) {
      const start = random(1100);
      const span = { start, end: start + 1 + random(50) };
      const all = items.filter((each) => each.start < span.end && span.start < each.end);
      expect(claims.within('n1', span).map((each) => each.id).sort()).toEqual(all.map((each) => each.id).sort());
    }
  });
});

describe('lanes', () => {
  it('are as few as the overlaps need, group by group', () => {
    const laned = inLanes([item('a', 'r', 0, 10), item('b', 'r', 5, 20), item('c', 'r', 10, 15), item('d', 'r', 30, 40)]);
    expect(laned.map(({ lane, lanes }) => [lane, lanes])).toEqual([[0, 2], [1, 2], [0, 2], [0, 1]]);
  });
});

describe('use below a row', () => {
  const tree = makeTree(RACK);
  const span = { start: 0, end: 100 };

  it('counts the leaves that are taken, alone or with their group', () => {
    const claims = makeClaims([
      item('a', 'g0', 0, 50), item('b', 'g1', 20, 30), item('c', 'n1', 60, 70), item('w', 'g0', 80, 90, { kind: 'waiting' }),
    ]);
    const use = useBelow(tree.byId.get('rack')!, tree, claims, span);
    expect(use.leaves).toBe(3);
    expect(use.steps.map(({ start, end, share }) => [start, end, Math.round(share * 3)])).toEqual([
      [0, 20, 1], [20, 30, 2], [30, 50, 1], [60, 70, 2],
    ]);
  });
  it('is all of it while the row or one above is taken', () => {
    const claims = makeClaims([item('a', 'g0', 0, 50), item('b', 'rack', 60, 70)]);
    const used = (id: string, time: number) => usedBelow(tree.byId.get(id)!, tree, claims, time);
    expect(used('n1', 10)).toEqual({ used: 1, leaves: 2 });
    expect(used('n1', 55)).toEqual({ used: 0, leaves: 2 });
    expect(used('n1', 65)).toEqual({ used: 2, leaves: 2 });
    expect(used('rack', 65)).toEqual({ used: 3, leaves: 3 });
  });
  it('is drawn as steps', () => {
    expect(usePath([{ start: 0, end: 10, share: 0.5 }], (time) => time * 2, 8)).toBe('M0.0 8V4.0H20.0V8Z');
  });
});

describe('rows', () => {
  const layout = layOut([30, 60, 30, 30]);

  it('are found by height', () => {
    expect(layout.height).toBe(150);
    expect([-5, 0, 29, 30, 89, 90, 149, 900].map((y) => rowAt(layout, y))).toEqual([0, 0, 0, 1, 1, 2, 3, 3]);
    expect(rowAt(layOut([]), 0)).toBe(-1);
  });
  it('are drawn only near the view, even ten thousand of them', () => {
    const many = layOut(Array.from({ length: 10_000 }, () => 32));
    const window = rowsNear(many, 5000 * 32, 800);
    expect(window.first).toBeGreaterThan(4980);
    expect(window.last).toBeLessThan(5040);
    expect(rowsNear(layOut([]), 0, 800)).toEqual({ first: 0, last: 0 });
  });
});

describe('the axis', () => {
  const range = { start: 1000 * DAY, end: 1007 * DAY };

  it('puts the range in the middle of the canvas', () => {
    const axis = axisAround(range, 700);
    expect(xOf(axis, range.start)).toBeCloseTo(SCREENS_ASIDE * 700);
    expect(timeAt(axis, canvasWidth(700))).toBeCloseTo(range.end + SCREENS_ASIDE * 7 * DAY);
  });
  it('zooms around a time', () => {
    const time = range.start + DAY;
    const closer = zoomed(range, 0.5, time);
    expect(closer.end - closer.start).toBe(3.5 * DAY);
    expect((time - closer.start) / 3.5 / DAY).toBeCloseTo(1 / 7);
    expect(zoomed(range, 0.00001, time).end - zoomed(range, 0.00001, time).start).toBe(HOUR / 2);
  });
  it('draws what is seen and a little more, in steps', () => {
    const axis = axisAround(range, 700);
    const at = (scroll: number) => drawnWindow(axis, partAt(scroll, 700), 700);
    expect(at(7000)).toEqual(at(7100));
    for (const scroll of [7000, 7100, 7174, 7175, 8123]) {
      expect(at(scroll).start).toBeLessThan(timeAt(axis, scroll));
      expect(at(scroll).end).toBeGreaterThan(timeAt(axis, scroll + 700));
    }
  });
});
