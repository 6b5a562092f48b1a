/** What can be asked for at a site: the models and slices that its nodes have, and how many of each are free now. */
import type { Resource } from '../api/types';
import type { Part, QueueNode } from './types';

export interface Stock {
  readonly all: number;
  readonly free: number;
}

export interface Options {
  readonly models: ReadonlyMap<string, Stock>;
  readonly slices: ReadonlyMap<string, Stock>;
}

export function optionsOf(nodes: readonly QueueNode[], resources: ReadonlyMap<string, Resource>, roles: Readonly<Record<string, Part>>): Options {
  const models = new Map<string, Stock>();
  const slices = new Map<string, Stock>();
  for (const { in_service, gpus } of nodes) {
    for (const { gpu, free } of gpus) {
      const isSlice = roles[gpu.type] === 'slice';
      const name = resources.get(gpu.id)?.attributes[isSlice ? 'mig_profile' : 'gpu_model'];
      if (typeof name !== 'string') continue;
      const stock = isSlice ? slices : models;
      const before = stock.get(name) ?? { all: 0, free: 0 };
      stock.set(name, { all: before.all + 1, free: before.free + (in_service && free === 1_000 ? 1 : 0) });
    }
  }
  return { models, slices };
}
