import { describe, expect, test } from 'vitest';
import type { ResourceCount, Tally } from '../api/types';
import { countByType, countInNodes, optionsOf } from './resource-counts';

const tally = (change: Partial<Tally>): Tally => ({ total: 0, free: 0, running: 0, reserved: 0, cut: 0, out_of_service: 0, ...change });
const row = (name: string, resources: Partial<Tally>, change: Partial<ResourceCount> = {}): ResourceCount =>
  ({ type: { id: `typ_${name}`, name, title: name.toUpperCase() }, in_node: true, resources: tally(resources), ...change }) as ResourceCount;

const thousandths = { unit: 'thousandths', ...tally({ total: 4_000, free: 1_500, running: 2_500 }) };
const counts: ResourceCount[] = [
  row('gpu', { total: 8, free: 5, running: 1, cut: 2 }, { role: 'gpu', model: 'A100' }),
  row('gpu', { total: 4, free: 1, running: 3 }, { role: 'gpu', model: 'L40S', capacity: thousandths }),
  row('gpu', { total: 1, free: 1 }, { role: 'gpu', model: 'L40S', in_node: false }),
  row('slice', { total: 14, free: 13, running: 1 }, { role: 'slice', model: 'A100', profile: '1g.10gb' }),
  row('cpu', { total: 2, running: 2 }, { role: 'cores', capacity: { unit: 'cores', ...tally({ total: 64, free: 40, running: 24 }) } }),
  row('cpu', { total: 1, free: 1 }, { role: 'cores', capacity: { unit: 'millicores', ...tally({ total: 8_000, free: 8_000 }) } }),
  row('licence', { total: 1, free: 1 }, { role: 'seats', in_node: false, capacity: { unit: 'seats', ...tally({ total: 12, free: 12 }) } }),
];

describe('one count for every page', () => {
  test('the status line counts all GPUs, and says how many of them stand in nodes', () => {
    const [slices, gpus, ...others] = countByType(counts);
    expect(slices).toMatchObject({ type: 'slice', bookable: { total: 14, free: 13 } });
    expect(gpus).toMatchObject({ title: 'GPU', bookable: { total: 13, free: 7, running: 4, cut: 2 }, inNodes: 12 });
    expect(others, 'nobody books cores or seats by the piece').toEqual([]);
  });

  test('the queue page counts those in nodes, from the same rows', () => {
    const { gpus, slices, cores } = countInNodes(counts);
    const all = countByType(counts).find(({ type }) => type === 'gpu');
    expect(gpus.total).toBe(all?.inNodes);
    expect(gpus).toEqual(tally({ total: 12, free: 6, running: 4, cut: 2 }));
    expect(slices).toEqual(tally({ total: 14, free: 13, running: 1 }));
    expect(cores).toEqual(tally({ total: 72, free: 48, running: 24 }));
  });

  test('the submit page offers the models and profiles that nodes have, without GPUs that are cut', () => {
    const options = optionsOf(counts);
    expect(options.models).toEqual(new Map([['A100', { all: 6, free: 5 }], ['L40S', { all: 4, free: 1 }]]));
    expect(options.slices).toEqual(new Map([['1g.10gb', { all: 14, free: 13 }]]));
    const free = [...options.models.values()].reduce((all, one) => all + one.free, 0);
    expect(free).toBe(countInNodes(counts).gpus.free);
  });
});
