/** What can be done with a booking, as it stands and by whom. The server has the last word. */
import type { Reservation, State } from '../api/types';
import { MINUTE } from '../time/span';

export interface Rights {
  readonly canChange: boolean;
  readonly canExtend: boolean;
  readonly canCancel: boolean;
  readonly canCheckIn: boolean;
  readonly canTake: boolean;
  readonly canHandOver: boolean;
}

const STANDING: readonly State[] = ['pending_approval', 'confirmed', 'starting', 'active'];
const GIVEN_UP: readonly State[] = ['ending', 'done', 'cancelled', 'rejected', 'failed'];
/** The server lets people in a little early. */
const EARLY_MS = 15 * MINUTE;

export function rightsOn(reservation: Reservation, isMine: boolean, isAdmin: boolean, now: number): Rights {
  const may = isMine || isAdmin;
  const stands = STANDING.includes(reservation.state);
  const { check_in } = reservation.terms;
  const mustCheckIn = typeof check_in === 'object' && 'until' in check_in;
  return {
    canChange: may && stands,
    canExtend: may && stands,
    canCancel: may && !GIVEN_UP.includes(reservation.state),
    canCheckIn: may && stands && mustCheckIn && now >= Date.parse(reservation.start) - EARLY_MS,
    canTake: may && reservation.state === 'held',
    canHandOver: may && stands,
  };
}
