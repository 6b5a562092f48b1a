import type { Family, ToldKind } from '../../data/told';

/** A told thing in words of this language already: names, a moment on the reader's clock, a status. */
export interface Said {
  readonly about: string;
  readonly by: string | undefined;
  readonly site: string;
  readonly status: string;
  readonly when: string;
  readonly count: number;
}

const by = (who: string | undefined) => (who ? ` by ${who}` : '');

export const notices = {
  title: 'Notifications',
  lead: 'What happened that concerns you, newest first. It is kept for 90 days.',
  empty: 'No notifications yet.',
  emptyHint: 'When a booking of yours is decided, moved or about to start, or something you booked changes its status, it appears here.',
  nothingMatches: 'No notification matches.',
  nothingMatchesHint: 'Show all of them, or choose another kind.',
  markAll: 'Mark all as read',
  markedAll: 'All notifications are marked as read.',
  markOne: 'Mark as read',
  markOneUnread: 'Mark as unread',
  unread: 'new',
  which: 'Which to show',
  all: 'All',
  onlyUnread: 'Unread',
  kind: 'Kind',
  anyKind: 'All kinds',
  families: { bookings: 'Bookings and approvals', reminders: 'Reminders', resources: 'Status of resources', sites: 'Joining sites', sessions: 'Sessions' } as Record<Family, string>,
  older: 'Show older ones',
  concerned: (count: number) => (count === 1 ? 'A booking of yours stands on it' : `${count} bookings of yours stand on it`),
  takeBy: (when: string) => `Kept free for you until ${when}`,
  decide: 'Decide',
  told: {
    booked_for_you: (it) => `Booked for you${by(it.by)}: ${it.about}`,
    room: (it) => `There is room now, and it is booked: ${it.about}`,
    approval_wanted: (it) => `${it.by ?? 'Somebody'} asks for your approval: ${it.about}`,
    changed: (it) => `Changed${by(it.by)}: ${it.about}`,
    ended: (it) => `Ended${by(it.by)}: ${it.about}`,
    moved: (it) => `Given other resources of its kind: ${it.about}`,
    reduced: (it) => `Something it needs has failed, and ${it.count} of its resources cannot be replaced: ${it.about}`,
    replaceable: (it) => `Something it needs has failed, but others of its kind are free. Change it to use them: ${it.about}`,
    irreplaceable: (it) => `Something it needs has failed, and there is nothing to replace it with: ${it.about}`,
    offered: (it) => `There is room for what you wait for: ${it.about}`,
    given: (it) => `${it.by ?? 'Somebody'} handed over to you: ${it.about}`,
    handed_on: (it) => `Handed over${by(it.by)}, no longer yours: ${it.about}`,
    no_show: (it) => `Released, because nobody checked in: ${it.about}`,
    approved: (it) => `Approved${by(it.by)}: ${it.about}`,
    rejected: (it) => `Rejected${by(it.by)}: ${it.about}`,
    cancelled: (it) => `Cancelled${by(it.by)}: ${it.about}`,
    failed: (it) => `Failed: ${it.about}`,
    starts: (it) => `Starts ${it.when}: ${it.about}`,
    ends: (it) => `Ends ${it.when}: ${it.about}`,
    status: (it) => `${it.about}, which you booked, is now: ${it.status}`,
    join_requested: (it) => `${it.by ?? 'Somebody'} asks to join ${it.site}`,
    joined: (it) => `You are now a member of ${it.site}`,
    joined_as_admin: (it) => `You are now an admin of ${it.site}`,
    join_declined: (it) => `Your request to join ${it.site} was declined`,
    session_failed: (it) => `Your session could not go on: ${it.about}`,
    session_idle: (it) => `Nothing was done in it for a while, and it will be stopped soon: ${it.about}`,
    session_out_of_memory: (it) => `A program in your session was ended because it used all of its memory: ${it.about}`,
    session_visited: (it) => `${it.by ?? 'An admin'} opened your session: ${it.about}`,
    profile_paused: (it) => `Nobody can start it any more until an admin of ${it.site} allows it: ${it.about}`,
    hidden: () => 'Something happened to what you cannot see any more',
  } as Record<ToldKind, (it: Said) => string>,
};
