/** What the timeline is given: rows from a site's resources, items from its calendar. */
import type { CalendarEntry, Reservation, Resource, ResourceType, State } from '../../api/types';
import { ms } from '../../i18n/format';
import type { Id, Item, ItemKind, Row, Status } from '../../timeline/types';

const STATUS: Record<Resource['effective_status'], Status> = {
  ACTIVE: 'active',
  MAINTENANCE: 'maintenance',
  UNAVAILABLE: 'unavailable',
};

const KIND: Record<CalendarEntry['kind'], ItemKind> = {
  reservation: 'booking',
  workload: 'workload',
  buffer: 'buffer',
  maintenance: 'maintenance',
  busy: 'busy',
};

/** Bookings in these states can still be moved. */
const CHANGEABLE: readonly State[] = ['pending_approval', 'confirmed', 'starting', 'active'];
const UNSETTLED: readonly State[] = ['pending_approval', 'held', 'waiting'];

export function rowsOf(resources: readonly Resource[], types: readonly ResourceType[], canBook: boolean, root: Id | null): Row[] {
  const colours = new Map(types.map((type) => [type.id, type.colour]));
  return resources.map((resource) => ({
    id: resource.id,
    parent: resource.parent?.id ?? root,
    name: resource.name,
    title: resource.title ?? null,
    typeId: resource.type.id,
    typeTitle: resource.type.title,
    colour: colours.get(resource.type.id) ?? '#888888',
    status: STATUS[resource.effective_status],
    statusReason: resource.status_reason ?? null,
    capacity: resource.capacity ?? null,
    bookable: canBook,
  }));
}

/** A site among several: a row that holds the others and cannot be booked itself. */
export function siteRow(id: Id, name: string, title: string): Row {
  return {
    id,
    parent: null,
    name,
    title,
    typeId: id,
    typeTitle: '',
    colour: '#888888',
    status: 'active',
    statusReason: null,
    capacity: null,
    bookable: false,
  };
}

export interface Viewer {
  readonly isAdmin: boolean;
  readonly stateWords: Readonly<Record<State, string>>;
}

export function itemOf(entry: CalendarEntry, viewer: Viewer): Item {
  const state = entry.state;
  const isHeld = state === 'held';
  return {
    id: entry.claim,
    resource: entry.resource.id,
    start: ms(entry.start),
    end: ms(entry.end),
    kind: isHeld ? 'hold' : KIND[entry.kind],
    booking: entry.reservation ?? entry.workload ?? entry.window ?? null,
    title: entry.title ?? null,
    owner: entry.mine ? null : (entry.owner?.display_name ?? null),
    mine: entry.mine,
    state: state ? viewer.stateWords[state] : null,
    tentative: state !== undefined && UNSETTLED.includes(state),
    amount: entry.amount ?? null,
    editable: (entry.mine || viewer.isAdmin) && entry.kind === 'reservation' && state !== undefined && CHANGEABLE.includes(state),
  };
}

/** What one waits for holds nothing, so the calendar does not know of it; it is drawn where it would be. */
export function waitingItems(reservation: Reservation, word: string): Item[] {
  const wish = reservation.terms.wait?.wish;
  if (!wish || !('named' in wish)) return [];
  return wish.named.map(({ resource, amount }) => ({
    id: `${reservation.id}/${resource}`,
    resource,
    start: ms(reservation.start),
    end: ms(reservation.end),
    kind: 'waiting',
    booking: reservation.id,
    title: reservation.title,
    owner: null,
    mine: true,
    state: word,
    tentative: true,
    amount: amount ?? null,
    editable: false,
  }));
}
