/** A booking that was dragged elsewhere on a view, as a change of the reservation. */
import type { Resource } from '../../api/types';
import * as acts from '../../booking/acts';
import type { Draft, Id, Item } from '../../timeline/types';

/**
 * Moves the whole booking in time, and the one resource that was dragged to another row. The reservation is read first: the
 * view knows only its claims, and a change names the version that it is meant for.
 */
export async function changeBooking(site: string, item: Item, to: Draft, resources: ReadonlyMap<Id, Resource>): Promise<void> {
  if (!item.booking) return;
  const before = await acts.read(site, item.booking);
  const target = to.resource && to.resource !== item.resource ? resources.get(to.resource) : undefined;
  const wanted = before.resources.map(({ resource, amount }) => ({
    resource: target && resource.id === item.resource ? target.name : resource.name,
    ...(amount ? { amount } : {}),
  }));
  await acts.move(before, {
    start: new Date(to.start).toISOString(),
    end: new Date(to.end).toISOString(),
    ...(target ? { resources: wanted } : {}),
  });
}
