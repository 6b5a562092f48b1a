/** What an owner chooses for work inside their reservation. */
import type { AtEnd } from '../api/types';

export const AT_END = ['stop', 'keep', 'checkpoint'] as const satisfies readonly AtEnd[];

/** Whether idle time is lent, as a choice of three. */
export const LENDING = ['site', 'yes', 'no'] as const;
export type Lending = (typeof LENDING)[number];

export function lendingOf(lends: boolean | null | undefined): Lending {
  if (lends === null || lends === undefined) return 'site';
  return lends ? 'yes' : 'no';
}

/** Null for what the site says. */
export function lendsOf(lending: Lending): boolean | null {
  return lending === 'site' ? null : lending === 'yes';
}

/** What can run work: nodes, and the GPUs and slices of them. */
export function canRunWork(types: readonly string[], roles: Readonly<Record<string, string>>): boolean {
  return types.some((type) => ['node', 'gpu', 'slice'].includes(roles[type] ?? ''));
}
