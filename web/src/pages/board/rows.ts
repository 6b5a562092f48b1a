/** What the timeline is given: rows from a site's resources, items from its calendar. */
import type { CalendarEntry, CalendarSummary, Reservation, Resource, ResourceType, State, SummaryStep } from '../../api/types';
import { ms } from '../../i18n/format';
import type { Span } from '../../time/span';
import { bandOfSteps, type CapacityOf } from '../../timeline/bands';
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

const BAND_KIND: Record<CalendarEntry['kind'], ItemKind> = {
  reservation: 'booking',
  buffer: 'booking',
  maintenance: 'booking',
  workload: 'workload',
  busy: 'busy',
};

/** What is too much to list, as one item for each stretch of time and kind on a resource. */
export function summaryItems(summary: CalendarSummary, capacityOf: CapacityOf): Item[] {
  const stepMs = summary.step_s * 1000;
  return summary.rows.flatMap(({ resource, steps }) => {
    const capacity = capacityOf(resource.id);
    const kinds = new Set(steps.flatMap(({ parts }) => parts.map(({ kind }) => BAND_KIND[kind])));
    return [...kinds].flatMap((kind) => {
      const levels = steps.flatMap((step) => levelOf(step, kind, stepMs, capacity) ?? []);
      return stretchesOf(levels).map((stretch) => bandOfSteps(resource.id, kind, stepMs, stretch));
    });
  });
}

/** What a kind takes in a step; null where it does not occur. */
function levelOf(step: SummaryStep, kind: ItemKind, stepMs: number, capacity: number | null) {
  const parts = step.parts.filter((part) => BAND_KIND[part.kind] === kind);
  if (parts.length === 0) return null;
  const start = ms(step.start);
  const share = ({ taken }: { taken?: number | null | undefined }) => (taken && capacity ? taken / capacity : 1);
  return {
    start,
    end: start + stepMs,
    // Several kinds may have their most at different moments; together they never take more than the step's own most.
    share: Math.min(share(step), parts.reduce((sum, part) => sum + share(part), 0)),
    isFull: step.is_full,
    count: parts.reduce((sum, { claims }) => sum + claims, 0),
    mine: parts.every(({ mine }) => mine),
  };
}

/** Steps that follow each other without a gap. */
function stretchesOf<T extends Span>(steps: readonly T[]): T[][] {
  const stretches: T[][] = [];
  for (const step of steps) {
    const last = stretches.at(-1);
    if (last && last.at(-1)!.end === step.start) last.push(step);
    else stretches.push([step]);
  }
  return stretches;
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
