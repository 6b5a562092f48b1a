/** A draft as the API takes it. */
import type { NewAnyReservation, NewReservation, NewSeries, Parameters } from '../api/types';
import type { BookingDraft } from './draft.svelte';
import { plausible, toSend } from './parameters';
import { toRule } from './repeat';
import { wishOf } from './wish';
import { lendsOf } from './work';

export type Request = NewReservation | NewSeries | NewAnyReservation;

/** The server wants a title even to think about it. */
const UNTITLED = '…';

/** What is sent when it is meant. */
export function requestFor(draft: BookingDraft): Request {
  return requestOf(draft, draft.title.trim(), toSend(draft.types, draft.answers));
}

/** What is asked while the form is still being filled in. */
export function questionOf(draft: BookingDraft, now: number): Request {
  const parameters = plausible(draft.types, draft.answers, new Date(now).toISOString().slice(0, 10));
  return requestOf(draft, draft.title.trim() || UNTITLED, parameters);
}

function requestOf(draft: BookingDraft, title: string, parameters: Parameters): Request {
  const common = {
    title,
    parameters,
    ...(draft.isPrivate ? { privacy: 'private' as const } : {}),
    ...(draft.project ? { project: draft.project } : {}),
    ...(draft.atEnd === 'stop' ? {} : { at_end: draft.atEnd }),
    ...(draft.lending === 'site' ? {} : { lends: lendsOf(draft.lending) }),
    ...(draft.onBehalfOf ? { on_behalf_of: draft.onBehalfOf } : {}),
  };
  const wish = draft.by === 'kind' ? wishOf(draft.wish) : null;
  if (wish) return { ...common, wish, ...(draft.isPinned ? { pinned: true } : {}) };
  const request: NewReservation = { ...common, ...draft.moments(), resources: draft.wantedResources() };
  if (!draft.repeat) return request;
  return { ...request, rule: toRule(draft.repeat), on_conflict: draft.skipConflicts ? 'skip' : 'refuse' };
}
