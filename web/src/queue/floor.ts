/** How much of the site's machines is in use, free, reserved or out of service now. */
import type { Part, QueueNode, Workload } from './types';

export interface Use {
  readonly all: number;
  /** By work of the queue. */
  readonly used: number;
  readonly free: number;
  /** Held by reservations, or kept for them. */
  readonly reserved: number;
  readonly out: number;
}

export interface Floor {
  readonly gpus: Use;
  readonly slices: Use;
  readonly cores: Use;
}

/**
 * The nodes say what is left of them and the runs what they hold; what neither accounts for is reserved. Parts of a node that is
 * out of service are out of service, whatever they hold.
 */
export function floorOf(nodes: readonly QueueNode[], workloads: readonly Workload[], roles: Readonly<Record<string, Part>>): Floor {
  const held = heldBy(workloads);
  const gpus = count();
  const slices = count();
  const cores = count();
  for (const node of nodes) {
    for (const { gpu, free } of node.gpus) {
      const of = roles[gpu.type] === 'slice' ? slices : gpus;
      of.add(1, free / 1_000, held.gpus.get(gpu.id) ?? 0, node.in_service);
    }
    cores.add(node.cores_milli / 1_000, node.cores_milli_free / 1_000, held.cores.get(node.node.id) ?? 0, node.in_service);
  }
  return { gpus: gpus.use(), slices: slices.use(), cores: cores.use() };
}

function heldBy(workloads: readonly Workload[]): { gpus: Map<string, number>; cores: Map<string, number> } {
  const gpus = new Map<string, number>();
  const cores = new Map<string, number>();
  for (const piece of workloads.flatMap(({ runs }) => runs).filter(({ state }) => state !== 'ended').flatMap(({ nodes }) => nodes)) {
    cores.set(piece.node.id, (cores.get(piece.node.id) ?? 0) + piece.cores_milli / 1_000);
    for (const { gpu, share } of piece.gpus) gpus.set(gpu.id, (gpus.get(gpu.id) ?? 0) + (share ?? 1_000) / 1_000);
  }
  return { gpus, cores };
}

function count() {
  const sum = { all: 0, used: 0, free: 0, reserved: 0, out: 0 };
  return {
    add(all: number, free: number, held: number, isIn: boolean) {
      sum.all += all;
      if (!isIn) {
        sum.out += all;
        return;
      }
      const used = Math.min(held, all - free);
      sum.used += used;
      sum.free += free;
      sum.reserved += all - free - used;
    },
    use: (): Use => sum,
  };
}
