// A campus that never was: racks with nodes with GPUs, shared CPUs, a microscope; busy, and the same on every run.

import { DAY, HOUR, MINUTE } from '../src/time/span';
import { startOfWeek } from '../src/time/zone';
import type { Item, ItemKind, Row } from '../src/timeline/types';

export const ZONE = 'Europe/Rome';

const TYPES = {
  rack: { typeId: 'rack', typeTitle: 'Rack', colour: '#7f7f7f' },
  node: { typeId: 'gpu-node', typeTitle: 'GPU node', colour: '#1f77b4' },
  gpu: { typeId: 'gpu', typeTitle: 'GPU', colour: '#2ca02c' },
  cpus: { typeId: 'cpu-pool', typeTitle: 'CPU pool', colour: '#ff7f0e' },
  tool: { typeId: 'instrument', typeTitle: 'Instrument', colour: '#9467bd' },
} as const;

const TITLES = [
  'Training of the large weather model', 'ResNet sweep', 'Tumour segmentation', 'Nightly benchmarks', 'Lattice QCD, run 12', 'Thesis',
  'Course: parallel programming', 'LLM fine-tuning for the archive project', 'Debug', 'Molecular dynamics', 'Rendering', 'Inference test',
];
const PEOPLE = ['Priya Nair', 'Marco Conti', 'Ines Moreau', 'Ada Okafor', 'Jonas Lindqvist', 'Giulia Ferraro', 'Maximiliane von Hohenstein-Wittelsbach'];

export function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 48271) % 2147483647;
    return state % below;
  };
}

function row(id: string, parent: string | null, type: keyof typeof TYPES, more: Partial<Row> = {}): Row {
  return {
    id, parent, name: id, title: null, ...TYPES[type], status: 'active', statusReason: null, capacity: null, bookable: true, ...more,
  };
}

export function makeRows(count: number): Row[] {
  const rows: Row[] = [];
  for (let rack = 0; rows.length < count; rack++) {
    const rackId = `rack-${String.fromCharCode(97 + rack)}`;
    rows.push(row(rackId, null, 'rack', { title: `Room 1.${rack + 4}, row ${rack + 1}` }));
    for (let n = 1; n <= 4; n++) {
      const nodeId = `gpu-${String(rack * 4 + n).padStart(2, '0')}`;
      rows.push(row(nodeId, rackId, 'node', { title: '8×A100 80 GB, 2 TB memory', ...nodeTrouble(nodeId) }));
      for (let g = 0; g < 8; g++) rows.push(row(`${nodeId}-gpu${g}`, nodeId, 'gpu', nodeTrouble(nodeId)));
    }
    rows.push(row(`cpu-pool-${rack + 1}`, null, 'cpus', { title: 'Shared cores', capacity: { amount: 64, unit: 'cores' } }));
    if (rack === 0) rows.push(row('electron-microscope-with-a-very-long-name', null, 'tool', { title: 'Building 7, basement, ask Giulia for the key' }));
    if (rack === 1) rows.push(row('sw-1', null, 'tool', { title: 'Programmable switch', bookable: false }));
  }
  return rows.slice(0, count);
}

function nodeTrouble(node: string): Partial<Row> {
  if (node === 'gpu-02') return { status: 'maintenance', statusReason: 'New power supply, until Wednesday' };
  if (node === 'gpu-04') return { status: 'unavailable', statusReason: 'Lost its network card' };
  return {};
}

/** `count` items in the week around `now`, on leaves and some nodes, none in the way of another. */
export function makeItems(rows: readonly Row[], count: number, now: number, days = 7): Item[] {
  const random = makeRandom(4711);
  const from = startOfWeek(now, ZONE, 1);
  const isParent = new Set(rows.map((each) => each.parent));
  const leaves = rows.filter((each) => !isParent.has(each.id));
  const nodes = rows.filter((each) => each.typeId === 'gpu-node');
  const items: Item[] = [];
  const add = (resource: string, start: number, end: number, more: Partial<Item>) =>
    items.push({
      id: `clm-${items.length}`, resource, start, end, kind: 'booking', booking: `rsv-${items.length}`, title: null, owner: null, mine: false,
      state: 'confirmed', tentative: false, amount: null, editable: false, ...more,
    });

  // Whole nodes at the end of the week, which their GPUs leave free.
  const nodeFrom = from + 5 * DAY;
  nodes.forEach((node, i) => {
    if (i % 3 === 0) add(node.id, nodeFrom + 9 * HOUR, nodeFrom + 21 * HOUR, { title: 'Whole-node training', mine: i === 0, owner: i === 0 ? 'you' : PEOPLE[i % PEOPLE.length]!, editable: i === 0 });
    if (node.id === 'gpu-02') add(node.id, from + DAY + 8 * HOUR, from + 3 * DAY, { kind: 'maintenance', title: 'New power supply', state: 'planned' });
  });
  const perLeaf = Math.ceil((count - items.length) / leaves.length);
  const span = (days === 7 ? 5 : days) * DAY;
  for (const leaf of leaves) {
    let time = from + random(6) * HOUR;
    const room = span / perLeaf;
    for (let i = 0; i < perLeaf && items.length < count; i++) {
      const length = Math.max(30 * MINUTE, Math.round((room * (20 + random(60))) / 100 / (15 * MINUTE)) * 15 * MINUTE);
      const start = time + random(3) * 15 * MINUTE;
      time += room;
      const dice = random(20);
      const mine = dice < 2;
      const kind: ItemKind = dice === 19 ? 'hold' : dice === 18 ? 'waiting' : dice > 11 ? 'busy' : 'booking';
      const told = kind !== 'busy';
      add(leaf.id, start, Math.min(start + length, time), {
        kind,
        mine: mine && told,
        title: told ? TITLES[random(TITLES.length)]! : null,
        owner: told ? (mine ? 'you' : PEOPLE[random(PEOPLE.length)]!) : null,
        editable: mine && told,
        tentative: dice === 1,
        state: dice === 1 ? 'waits for approval' : told ? 'confirmed' : null,
        amount: leaf.capacity ? 16 : null,
      });
      if (mine && i % 2 === 0) add(leaf.id, Math.min(start + length, time), Math.min(start + length, time) + 15 * MINUTE, { kind: 'buffer', booking: `rsv-${items.length - 1}`, mine: true });
    }
  }
  // On shared rows some share the same time.
  for (const pool of leaves.filter((each) => each.capacity)) {
    for (let i = 0; i < 3; i++) add(pool.id, from + (i + 0.3) * DAY, from + (i + 1) * DAY, { title: TITLES[i]!, owner: PEOPLE[i]!, amount: 24 });
  }
  return items;
}
