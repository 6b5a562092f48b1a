/** What can be done with a workload, by whom, and what is said afterwards. The server has the last word. */
import { toasts } from '../design/toasts.svelte';
import { i18n } from '../i18n/i18n.svelte';
import * as client from './client';
import { isOver, type Workload } from './types';

export interface Rights {
  readonly canHold: boolean;
  readonly canRelease: boolean;
  readonly canCancel: boolean;
  readonly canExtend: boolean;
}

export function rightsOn(workload: Workload, isMine: boolean, isAdmin: boolean): Rights {
  const may = isMine || isAdmin;
  return {
    canHold: may && workload.state === 'WAITING',
    canRelease: may && workload.state === 'HELD',
    canCancel: may && !isOver(workload.state),
    canExtend: may && workload.state === 'RUNNING',
  };
}

export async function hold(before: Workload, onundone: () => void): Promise<Workload> {
  const site = before.site.name;
  const after = await client.hold(site, before.number);
  toasts.say(i18n.t.queue.said.held(before.title), {
    label: i18n.t.common.undo,
    run: async () => {
      await client.release(site, before.number);
      toasts.say(i18n.t.common.undone);
      onundone();
    },
  });
  return after;
}

export async function release(before: Workload): Promise<Workload> {
  const after = await client.release(before.site.name, before.number);
  toasts.say(i18n.t.queue.said.released(before.title));
  return after;
}

export async function extend(before: Workload, by: string): Promise<Workload> {
  const after = await client.extend(before.site.name, before.number, by);
  toasts.say(i18n.t.queue.said.extended(before.title));
  return after;
}

export async function cancelTask(before: Workload, task: number): Promise<Workload> {
  const after = await client.cancel(before.site.name, before.number, '', task);
  toasts.say(i18n.t.queue.said.cancelledTask(task, before.title));
  return after;
}

export async function cancel(before: Workload, reason: string): Promise<Workload> {
  const after = await client.cancel(before.site.name, before.number, reason);
  toasts.say(i18n.t.queue.said.cancelled(before.title));
  return after;
}
