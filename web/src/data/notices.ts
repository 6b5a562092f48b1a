/** Which events are worth a notification to whom; pure, so that it can be tested. */
import type { Event as BerthEvent, EventKind } from '../api/types';

export type NoticeKind =
  | 'approved' | 'rejected' | 'cancelled' | 'failed' | 'started' | 'ended' | 'moved' | 'troubled' | 'offered' | 'handed_over'
  | 'no_show' | 'approval_wanted' | 'status' | 'maintenance' | 'join_requested' | 'joined' | 'join_declined';

export interface Notice {
  readonly number: number;
  readonly at: string;
  readonly kind: NoticeKind;
  readonly site: string | undefined;
  /** The title of a booking, the name of a resource or of a person: what the sentence is about. */
  readonly about: string;
  readonly reason: string | null;
  readonly status?: string;
  readonly reservation?: string;
}

export interface Reader {
  readonly person: string;
  /** The resources of bookings that the reader has now or later, by id. */
  readonly resources: ReadonlySet<string>;
  readonly administers: (site: string) => boolean;
}

interface Data {
  readonly owner?: string;
  readonly title?: string;
  readonly reason?: string | null;
  readonly state?: string;
  readonly reservation?: string;
  readonly resource?: string;
  readonly name?: string;
  readonly status?: string;
  readonly person?: string;
  readonly login?: string;
  readonly message?: string | null;
}

/** What happens to one's own bookings. What one did oneself is left out as far as an event tells: it names no actor. */
const OWN: Partial<Record<EventKind, NoticeKind>> = {
  'reservation.approved': 'approved',
  'reservation.rejected': 'rejected',
  'reservation.failed': 'failed',
  'reservation.started': 'started',
  'reservation.ended': 'ended',
  'reservation.moved': 'moved',
  'reservation.troubled': 'troubled',
  'reservation.offered': 'offered',
  'reservation.handed_over': 'handed_over',
  'reservation.no_show': 'no_show',
};

export function noticeOf(event: BerthEvent, reader: Reader): Notice | null {
  const data = (typeof event.data === 'object' && event.data !== null ? event.data : {}) as Data;
  const kind = kindOf(event, data, reader);
  if (!kind) return null;
  return {
    number: event.number,
    at: event.at,
    kind,
    site: event.site?.name,
    about: data.title ?? data.name ?? data.login ?? '',
    reason: data.reason ?? data.message ?? null,
    ...(data.status ? { status: data.status } : {}),
    ...(data.reservation ? { reservation: data.reservation } : {}),
  };
}

function kindOf(event: BerthEvent, data: Data, reader: Reader): NoticeKind | null {
  const isOwn = data.owner === reader.person;
  const administers = event.site ? reader.administers(event.site.name) : false;
  switch (event.kind) {
    // Cancelling one's own booking takes no reason; whoever cancels another's is asked for one.
    case 'reservation.cancelled':
      return isOwn && data.reason ? 'cancelled' : null;
    case 'reservation.created':
      return !isOwn && administers && data.state === 'pending_approval' ? 'approval_wanted' : null;
    case 'resource.status':
      return data.resource && reader.resources.has(data.resource) ? 'status' : null;
    case 'maintenance.planned':
      return 'maintenance';
    case 'join.requested':
      return administers ? 'join_requested' : null;
    case 'member.joined':
      return data.person === reader.person ? 'joined' : null;
    case 'join.declined':
      return data.person === reader.person ? 'join_declined' : null;
    default:
      return isOwn ? (OWN[event.kind] ?? null) : null;
  }
}
