/** The queue as a sheet: a row for each workload. */
import type { Cell } from '../design/csv';
import { nodesOf } from './order';
import type { Workload } from './types';

export const COLUMNS = ['number', 'title', 'owner', 'project', 'class', 'state', 'since', 'waits', 'expected', 'nodes', 'ended', 'id'];

export function row(one: Workload): Cell[] {
  const { number, title, owner, project, state, since, waits, ended_at, id } = one;
  return [number, title, owner.login, project?.name ?? null, one.class, state, since, waits?.code ?? null, waits?.promised ?? waits?.forecast ?? null, nodesOf(one).join(' '), ended_at ?? null, id];
}
