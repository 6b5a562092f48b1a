/** What the API of sessions speaks of. */
import type * as api from '../api/types';

export type { Access, Session, SessionApp, SessionProfile, SessionStart, SessionState, SessionVisit, SharedWith, StartableProfile } from '../api/types';

export const ACCESSES = ['view', 'edit'] as const satisfies readonly api.Access[];

/** Whether something of it waits or runs. */
export function isLive(state: api.SessionState): boolean {
  return state !== 'stopped' && state !== 'failed';
}

/** Whether somebody may be waiting for it; what it said then is said of the try before. */
export function isOnItsWay(state: api.SessionState): boolean {
  return state === 'waiting' || state === 'starting';
}

/** What the person may do in it; null for who comes only as an admin. */
export function accessOf({ owner, shared }: api.Session, person: string | undefined): api.Access | null {
  if (owner.id === person) return 'edit';
  return shared.find((one) => one.person.id === person)?.access ?? null;
}
