/** What the queue's API speaks of. */
import type * as api from '../api/types';

export type { Because, Class, Gpus, Grant, Near, NewGrant, NewWorkload, Profile, Program, QueueCounts, Run, Share, Task, Waits, Workload, WorkloadPreview, WorkloadState } from '../api/types';

export type Wish = api.WorkloadWish;
export type Outcome = api.RunOutcome;
/** What resources of a type are to the queue. */
export type Part = api.QueueRole;

export const PARTS = ['node', 'cores', 'memory', 'gpu', 'slice', 'seats'] as const satisfies readonly Part[];
/** How much somebody may have; what is left out is not limited. */
export type Quota = Omit<api.QuotaSetting, 'amounts'> & { readonly amounts: Partial<api.QuotaSetting['amounts']> };
export type Settings = Omit<Required<api.QueueSettings>, 'quotas'> & { readonly quotas: readonly Quota[] };
export interface SettingsView {
  readonly settings: Settings;
  readonly version: number;
}

export const WAITING_STATES = ['WAITING', 'HELD'] as const satisfies readonly api.WorkloadState[];
export const OVER_STATES = ['COMPLETED', 'FAILED', 'CANCELLED'] as const satisfies readonly api.WorkloadState[];

export function isOver(state: api.WorkloadState): boolean {
  return (OVER_STATES as readonly string[]).includes(state);
}
