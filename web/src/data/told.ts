/** What a notification says, as one of a few sentences that a language can word; pure, so that it can be tested. */
import type { EventKind, Notification, State, Status } from '../api/types';

export type ToldKind =
  | 'booked_for_you' | 'room' | 'approval_wanted' | 'changed' | 'ended' | 'moved' | 'reduced' | 'replaceable' | 'irreplaceable'
  | 'offered' | 'given' | 'handed_on' | 'no_show' | 'approved' | 'rejected' | 'cancelled' | 'failed' | 'starts' | 'ends'
  | 'status' | 'join_requested' | 'joined' | 'joined_as_admin' | 'join_declined'
  | 'session_failed' | 'session_idle' | 'session_out_of_memory' | 'session_visited' | 'profile_paused' | 'hidden';

/** What a sentence is made of. */
export interface Told {
  readonly kind: ToldKind;
  /** The title of a booking, or the name of a resource. */
  readonly about: string;
  readonly by?: string;
  readonly site: string;
  readonly status?: Status;
  /** Resources that are missing, or bookings that are concerned. */
  readonly count: number;
  /** The moment that a reminder is about: the booking may have another one by now. */
  readonly moment?: string;
  readonly reason?: string;
  /** The session that it is about. */
  readonly session?: string;
}

interface Data {
  readonly as?: 'owner' | 'former_owner' | 'approver' | 'admin' | 'oneself';
  readonly version?: number;
  readonly state?: State;
  readonly fate?: 'reduced' | 'offered' | 'cannot_be_held';
  readonly about?: 'start' | 'end';
  readonly role?: 'member' | 'site_admin';
  readonly status?: Status;
  readonly missing?: number;
  readonly reservations?: readonly string[];
  readonly reason?: string | null;
  readonly message?: string | null;
  /** Of a session or a profile. */
  readonly name?: string;
  readonly session?: string;
  readonly profile?: string;
  readonly said?: string | null;
  readonly start?: string;
  readonly end?: string;
}

/** Families to filter by. Who is asked for approval is told of a booking, too. */
export const FAMILIES = {
  bookings: [
    'reservation.created', 'reservation.changed', 'reservation.moved', 'reservation.troubled', 'reservation.offered', 'reservation.handed_over',
    'reservation.no_show', 'reservation.approved', 'reservation.rejected', 'reservation.cancelled', 'reservation.failed',
  ],
  reminders: ['reservation.reminder'],
  resources: ['resource.status'],
  sites: ['join.requested', 'member.joined', 'join.declined'],
  sessions: ['session.failed', 'session.idle', 'session.out_of_memory', 'session.visited', 'profile.paused'],
} as const satisfies Record<string, readonly EventKind[]>;

export type Family = keyof typeof FAMILIES;

/** Kinds that are always told in the same words. */
const PLAIN: Partial<Record<EventKind, ToldKind>> = {
  'reservation.moved': 'moved',
  'reservation.offered': 'offered',
  'reservation.no_show': 'no_show',
  'reservation.approved': 'approved',
  'reservation.rejected': 'rejected',
  'reservation.cancelled': 'cancelled',
  'reservation.failed': 'failed',
  'resource.status': 'status',
  'join.requested': 'join_requested',
  'join.declined': 'join_declined',
  'session.failed': 'session_failed',
  'session.idle': 'session_idle',
  'session.out_of_memory': 'session_out_of_memory',
  'session.visited': 'session_visited',
  'profile.paused': 'profile_paused',
};

export function toldOf(notification: Notification): Told {
  const data = dataOf(notification);
  const kind = kindOf(notification, data);
  // That there is room is all the reason there is.
  const reason = kind === 'offered' || kind === 'room' ? undefined : (data.reason ?? data.message ?? data.said);
  // An admin may have booked for somebody; it is theirs, and they ask.
  const by = kind === 'approval_wanted' ? notification.reservation?.owner : notification.by;
  const moment = kind === 'starts' ? data.start : kind === 'ends' ? data.end : undefined;
  return {
    kind,
    about: notification.reservation?.title ?? notification.resource?.name ?? data.name ?? data.profile ?? '',
    site: notification.site?.title ?? '',
    count: data.missing ?? data.reservations?.length ?? 0,
    ...(by ? { by: by.display_name } : {}),
    ...(data.status ? { status: data.status } : {}),
    ...(moment ? { moment } : {}),
    ...(reason ? { reason } : {}),
    ...(data.session ? { session: data.session } : {}),
  };
}

/** Whether a decision about somebody else's booking is asked of the reader. */
export function isAsked(notification: Notification): boolean {
  return dataOf(notification).as === 'approver';
}

/** The reader's bookings that stand on a resource which was told of. */
export function concernedBookings(notification: Notification): readonly string[] {
  return dataOf(notification).reservations ?? [];
}

function dataOf(notification: Notification): Data {
  return typeof notification.data === 'object' && notification.data !== null ? notification.data : {};
}

function kindOf(notification: Notification, data: Data): ToldKind {
  const { kind } = notification;
  const isAboutHidden = kind.startsWith('reservation.') ? !notification.reservation : kind === 'resource.status' && !notification.resource;
  if (isAboutHidden) return 'hidden';
  switch (kind) {
    case 'reservation.created':
      return data.as === 'approver' ? 'approval_wanted' : data.version === 1 ? 'booked_for_you' : 'room';
    case 'reservation.changed':
      return data.as === 'approver' ? 'approval_wanted' : data.state === 'ending' ? 'ended' : 'changed';
    case 'reservation.troubled':
      return data.fate === 'reduced' ? 'reduced' : data.fate === 'offered' ? 'replaceable' : 'irreplaceable';
    case 'reservation.handed_over':
      return data.as === 'former_owner' ? 'handed_on' : 'given';
    case 'reservation.reminder':
      return data.about === 'end' ? 'ends' : 'starts';
    case 'member.joined':
      return data.role === 'site_admin' ? 'joined_as_admin' : 'joined';
    default:
      return PLAIN[kind] ?? 'hidden';
  }
}
