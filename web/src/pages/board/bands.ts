/** Where an item that stands for several claims leads. */
import type { Resource } from '../../api/types';
import { settings } from '../../queue/client';
import { within, type Span } from '../../time/span';
import type { Id } from '../../timeline/types';

/** The node of the queue that a resource is, or is a part of; its own name where the site's queue names no such type. */
export async function nodeAround(site: string, id: Id, resources: ReadonlyMap<Id, Resource>): Promise<string | undefined> {
  const { roles } = (await settings(site)).settings;
  for (let at = resources.get(id); at; at = at.parent ? resources.get(at.parent.id) : undefined) {
    if (roles[at.type.name] === 'node') return at.name;
  }
  return resources.get(id)?.name;
}

/** A quarter of the range, in the middle of what is seen of the span. */
export function closerTo(span: Span, range: Span): Span {
  const { start, end } = within(span, range) ?? range;
  const middle = (start + end) / 2;
  const half = (range.end - range.start) / 8;
  return { start: middle - half, end: middle + half };
}
