/** What somebody can do with a session. The server has the last word. */
import { accessOf, isLive, type Session } from './types';

export interface Rights {
  readonly isMine: boolean;
  /** By its address, without giving a reason. */
  readonly canOpen: boolean;
  /** As an admin, with a reason. */
  readonly canVisit: boolean;
  readonly canStop: boolean;
  readonly canStart: boolean;
  readonly canKeep: boolean;
  /** Share and rename. */
  readonly canChange: boolean;
  readonly canRemove: boolean;
  /** What it said, and who came. */
  readonly canSeeInside: boolean;
}

export function rightsOn(session: Session, person: string | undefined, isAdmin: boolean): Rights {
  const isMine = session.owner.id === person;
  const may = isMine || isAdmin;
  const isOn = isLive(session.state);
  const isInvited = accessOf(session, person) !== null;
  return {
    isMine,
    canOpen: session.state === 'ready' && isInvited,
    canVisit: session.state === 'ready' && !isInvited && isAdmin,
    canStop: may && isOn && session.state !== 'stopping',
    // It runs as its owner, so nobody else starts it.
    canStart: isMine && !isOn,
    canKeep: may && session.state === 'ready',
    canChange: may,
    canRemove: may && !isOn,
    canSeeInside: may,
  };
}
