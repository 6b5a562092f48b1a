/**
 * What the queue's API speaks of. Three of its names, `Wish`, `Outcome` and `Role`, are also names of other things in
 * docs/openapi.json, where only one of each can stand; the queue's own are written out here until they have names of their own.
 */
import type * as api from '../api/types';

export type { Class, Grant, NewGrant, Program, QueueNode, Share, Waits, WorkloadState } from '../api/types';

export type Near = 'anywhere' | 'rack' | 'node' | 'link';

/** Whole GPUs (`count`), a `share` of one in thousandths, or `count` slices of a profile. */
export interface Gpus {
  readonly count?: number;
  readonly share?: number;
  readonly slice?: string;
  readonly where?: readonly string[];
}

export interface Task {
  readonly cores_milli: number;
  readonly memory_mib: number;
  readonly gpus?: Gpus;
}

export interface Wish {
  readonly tasks?: number;
  readonly task: Task;
  readonly limit: string;
  readonly near?: Near;
  readonly at_least?: Near;
}

export type Outcome = 'completed' | 'out_of_memory' | 'could_not_start' | 'timed_out' | 'preempted' | 'checkpointed' | 'cancelled' | 'node_failed' | { readonly failed: { readonly exit_code: number } };
export type Because = 'preempted' | 'cancelled' | 'timed_out' | 'checkpoint';

export interface Run {
  readonly id: string;
  readonly task: number;
  readonly attempt: number;
  readonly wish: number;
  readonly state: 'starting' | 'running' | 'stopping' | 'ended';
  readonly because?: Because;
  readonly outcome?: Outcome;
  readonly nodes: readonly api.RunNode[];
  readonly began: string;
  readonly until: string;
  readonly ended_at?: string;
}

export type Workload = Omit<api.Workload, 'wishes' | 'runs'> & { readonly wishes: readonly Wish[]; readonly runs: readonly Run[] };
export type NewWorkload = Omit<api.NewWorkload, 'wishes'> & { readonly wishes?: readonly Wish[] };

export const PARTS = ['node', 'cores', 'memory', 'gpu', 'slice', 'seats'] as const;
/** What resources of a type are to the queue. */
export type Part = (typeof PARTS)[number];
export type Profile = Omit<api.Profile, 'wishes'> & { readonly wishes: readonly Wish[] };
/** How much somebody may have; what is left out is not limited. */
export type Quota = Omit<api.QuotaSetting, 'amounts'> & { readonly amounts: Partial<api.QuotaSetting['amounts']> };
export type Settings = Omit<Required<api.QueueSettings>, 'roles' | 'profiles' | 'quotas'> & {
  readonly quotas: readonly Quota[];
  readonly roles: Readonly<Record<string, Part>>;
  readonly profiles: Readonly<Record<string, Profile>>;
};
export interface SettingsView {
  readonly settings: Settings;
  readonly version: number;
}

export const WAITING_STATES = ['WAITING', 'HELD'] as const satisfies readonly api.WorkloadState[];
export const OVER_STATES = ['COMPLETED', 'FAILED', 'CANCELLED'] as const satisfies readonly api.WorkloadState[];

export function isOver(state: api.WorkloadState): boolean {
  return (OVER_STATES as readonly string[]).includes(state);
}
