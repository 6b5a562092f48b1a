// Making, moving and changing bookings by mouse, touch and keys: one machine without a browser in it.
//
// A press on empty time begins a booking, on an item's body a move, on its edges another length. A mouse drags once it
// has left the spot; a finger drags after resting on it, because before that it scrolls. Keys begin where the cursor is
// and nudge. Every way ends with an outcome, which the component hands on.

import { nextStep, previousStep, stepStart, type Steps } from './steps';
import type { Draft, Id, Item } from './types';

export type Mode = 'create' | 'move' | 'resize-start' | 'resize-end';
export type Grip = 'empty' | 'body' | 'start' | 'end';
export type By = 'mouse' | 'touch' | 'keys';

/** A place under the pointer, not snapped. */
export interface Point {
  readonly resource: Id | null;
  readonly time: number;
}

export interface Press {
  readonly by: 'mouse' | 'touch';
  readonly x: number;
  readonly y: number;
  readonly point: Point;
  readonly grip: Grip;
  readonly item: Item | null;
  /** What a press on empty time means that does not become a drag: to book there, or only to point. */
  readonly click: 'book' | 'point';
}

export interface Dragging {
  readonly phase: 'dragging';
  readonly by: By;
  readonly mode: Mode;
  readonly item: Item | null;
  readonly from: Point;
  readonly draft: Draft;
}

export type DragState = { readonly phase: 'idle' } | ({ readonly phase: 'pressed' } & Press) | Dragging;

export type DragEvent =
  | ({ readonly type: 'press' } & Press)
  /** A finger has rested on its spot long enough. */
  | { readonly type: 'held' }
  | { readonly type: 'move'; readonly x: number; readonly y: number; readonly point: Point }
  | { readonly type: 'release' }
  | { readonly type: 'giveUp' }
  | { readonly type: 'begin'; readonly mode: Mode; readonly item: Item | null; readonly draft: Draft }
  /** By so many steps, earlier (below 0) or later. `edge` is only asked where both could move. */
  | { readonly type: 'nudge'; readonly by: number; readonly edge: 'start' | 'end' }
  | { readonly type: 'toRow'; readonly resource: Id };

export type Outcome =
  | { readonly kind: 'none' }
  | { readonly kind: 'book'; readonly draft: Draft }
  | { readonly kind: 'move' | 'extend'; readonly item: Item; readonly draft: Draft }
  | { readonly kind: 'open'; readonly item: Item }
  /** A click that books nothing. */
  | { readonly kind: 'point'; readonly point: Point }
  | { readonly kind: 'gaveUp' };

export const IDLE: DragState = { phase: 'idle' };

const NONE: Outcome = { kind: 'none' };
const MODE_OF_GRIP: Record<Grip, Mode> = { empty: 'create', body: 'move', start: 'resize-start', end: 'resize-end' };

/** A hand that only clicks still trembles. */
const TREMOR_PX = 4;

/** How long a finger rests before it drags. */
export const HOLD_MS = 400;

export function drag(state: DragState, event: DragEvent, steps: Steps): [DragState, Outcome] {
  switch (event.type) {
    case 'press': {
      const { type: _, ...press } = event;
      return [{ phase: 'pressed', ...press }, NONE];
    }
    case 'begin':
      return [beginByKeys(event.mode, event.item, event.draft), NONE];
    case 'giveUp':
      return [IDLE, state.phase === 'dragging' ? { kind: 'gaveUp' } : NONE];
    case 'held':
      return state.phase === 'pressed' ? [grasp(state, steps), NONE] : [state, NONE];
    case 'move':
      return [moved(state, event, steps), NONE];
    case 'nudge':
      return state.phase === 'dragging' ? [nudged(state, event.by, event.edge, steps), NONE] : [state, NONE];
    case 'toRow':
      return [toRow(state, event.resource), NONE];
    case 'release':
      return [IDLE, released(state, steps)];
  }
}

function beginByKeys(mode: Mode, item: Item | null, draft: Draft): Dragging {
  return { phase: 'dragging', by: 'keys', mode, item, from: { resource: draft.resource, time: draft.start }, draft };
}

function canDrag(press: Press): boolean {
  return press.grip === 'empty' || press.item?.editable === true;
}

/** The first ghost: what is pressed on, as it is; or a booking of the usual length. */
function grasp(press: Press & { phase: 'pressed' }, steps: Steps): DragState {
  if (!canDrag(press)) return press;
  const { by, point: from, item } = press;
  const draft = item ? draftOf(item) : clickDraft(from, steps);
  return { phase: 'dragging', by, mode: MODE_OF_GRIP[press.grip], item, from, draft };
}

function draftOf(item: Item): Draft {
  return { resource: item.resource, start: item.start, end: item.end, amount: item.amount };
}

function clickDraft(point: Point, steps: Steps): Draft {
  const start = stepStart(point.time, steps);
  return { resource: point.resource, start, end: start + steps.usualLength };
}

function moved(state: DragState, to: { x: number; y: number; point: Point }, steps: Steps): DragState {
  if (state.phase === 'pressed') {
    const hasLeft = Math.hypot(to.x - state.x, to.y - state.y) > TREMOR_PX;
    if (!hasLeft) return state;
    // A finger that leaves before it has rested wants to scroll.
    if (state.by === 'touch') return IDLE;
    const grasped = grasp(state, steps);
    return grasped.phase === 'dragging' ? follow(grasped, to.point, steps) : grasped;
  }
  return state.phase === 'dragging' && state.by !== 'keys' ? follow(state, to.point, steps) : state;
}

function follow(state: Dragging, point: Point, steps: Steps): Dragging {
  const draft = draftAt(state, point, steps);
  // The same object while nothing changes, so that nothing is judged or drawn anew.
  return sameDraft(draft, state.draft) ? state : { ...state, draft };
}

function sameDraft(a: Draft, b: Draft): boolean {
  return a.resource === b.resource && a.start === b.start && a.end === b.end;
}

function draftAt({ mode, item, from, draft }: Dragging, point: Point, steps: Steps): Draft {
  if (mode === 'create' || !item) {
    const [early, late] = from.time <= point.time ? [from.time, point.time] : [point.time, from.time];
    const start = stepStart(early, steps);
    return { ...draft, start, end: Math.max(steps.up(late), nextStep(start, steps)) };
  }
  const by = point.time - from.time;
  if (mode === 'move') {
    const start = movedBy(item.start, by, steps);
    return { ...draft, resource: point.resource ?? draft.resource, start, end: start + (item.end - item.start) };
  }
  if (mode === 'resize-start') {
    return { ...draft, start: Math.min(snappedBy(item.start, by, steps), previousStep(item.end, steps)) };
  }
  return { ...draft, end: Math.max(snappedBy(item.end, by, steps), nextStep(item.start, steps)) };
}

/** By whole steps: 09:10 moves to 10:10 and not to 10:00, because only the hour was meant. */
function movedBy(time: number, by: number, steps: Steps): number {
  return steps.carried(time, steps.near(steps.down(time) + by));
}

/** An edge that does not lie on a step stays where it is until the pointer means it. */
function snappedBy(time: number, by: number, steps: Steps): number {
  return Math.abs(by) < steps.length / 2 ? time : steps.near(time + by);
}

function nudged(state: Dragging, by: number, edge: 'start' | 'end', steps: Steps): Dragging {
  const { draft, mode } = state;
  const step = by > 0 ? nextStep : previousStep;
  const stepped = (time: number) => {
    for (let i = 0; i < Math.abs(by); i++) time = step(time, steps);
    return time;
  };
  if (mode === 'move') {
    const start = steps.carried(draft.start, stepped(steps.down(draft.start)));
    return { ...state, draft: { ...draft, start, end: start + (draft.end - draft.start) } };
  }
  const changed =
    edge === 'start' ? { ...draft, start: stepped(draft.start) } : { ...draft, end: stepped(draft.end) };
  return changed.start < changed.end ? { ...state, draft: changed } : state;
}

/** Only a new booking and a moved one can change their row. */
function toRow(state: DragState, resource: Id): DragState {
  if (state.phase !== 'dragging' || (state.mode !== 'create' && state.mode !== 'move')) return state;
  return { ...state, draft: { ...state.draft, resource } };
}

function released(state: DragState, steps: Steps): Outcome {
  if (state.phase === 'pressed') {
    if (state.item) return { kind: 'open', item: state.item };
    if (state.click === 'point') return { kind: 'point', point: state.point };
    return { kind: 'book', draft: clickDraft(state.point, steps) };
  }
  if (state.phase === 'idle') return NONE;
  const { mode, item, draft } = state;
  if (mode === 'create' || !item) return { kind: 'book', draft };
  if (sameDraft(draft, item)) return NONE;
  return { kind: mode === 'move' ? 'move' : 'extend', item, draft };
}
