// Small resources and items for the tests of this folder.

import { HOUR } from '../time/span';
import { makeSteps, type Steps } from './steps';
import type { Item, Row } from './types';

export function row(id: string, parent: string | null = null, more: Partial<Row> = {}): Row {
  return {
    id, parent, name: id, title: null, typeId: 'node', typeTitle: 'Node', colour: '#1f77b4', status: 'active',
    statusReason: null, capacity: null, bookable: true, ...more,
  };
}

export function item(id: string, resource: string, start: number, end: number, more: Partial<Item> = {}): Item {
  return {
    id, resource, start, end, kind: 'booking', booking: `rsv-${id}`, title: id, owner: 'Ada', mine: false, state: 'confirmed',
    tentative: false, amount: null, editable: true, ...more,
  };
}

/** A rack with two nodes, of which the first has two GPUs, and a shared node beside it. */
export const RACK: readonly Row[] = [
  row('rack'),
  row('n1', 'rack'),
  row('n2', 'rack'),
  row('g0', 'n1'),
  row('g1', 'n1'),
  row('cpus', null, { capacity: { amount: 64, unit: 'cores' } }),
];

export function hourSteps(zone = 'UTC'): Steps {
  return makeSteps({ length: HOUR, zone, earliest: 0, usualLength: 2 * HOUR });
}
