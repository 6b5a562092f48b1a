// Between time and pixels.
//
// The timeline scrolls as the browser scrolls anything: a canvas some screens wide lies under the view, and is laid anew
// around the view when that comes near an edge. So wheels, trackpads, touch and scroll bars behave as people know them,
// names and labels can stick, and time still has no end.

import { DAY, lengthOf, MINUTE, type Span } from '../time/span';

export interface Axis {
  /** The time at the left edge of the canvas. */
  readonly origin: number;
  readonly msPerPx: number;
}

/** Screens of canvas on each side of the view, when it is laid. */
export const SCREENS_ASIDE = 10;

const RANGE_MIN = 30 * MINUTE;
const RANGE_MAX = 400 * DAY;

export function xOf(axis: Axis, time: number): number {
  return (time - axis.origin) / axis.msPerPx;
}

export function timeAt(axis: Axis, x: number): number {
  return axis.origin + x * axis.msPerPx;
}

/** The canvas around a range that fills `width` pixels. */
export function axisAround(range: Span, width: number): Axis {
  const length = lengthOf(range);
  return { origin: range.start - SCREENS_ASIDE * length, msPerPx: length / width };
}

export function canvasWidth(width: number): number {
  return (2 * SCREENS_ASIDE + 1) * width;
}

/** `range` longer by `factor` (or shorter, below 1), with `time` staying where it is in the view. */
export function zoomed(range: Span, factor: number, time: number): Span {
  const length = lengthOf(range);
  const wanted = Math.min(RANGE_MAX, Math.max(RANGE_MIN, length * factor));
  const share = (time - range.start) / length;
  const start = time - share * wanted;
  return { start, end: start + wanted };
}

/** Parts of a screen by which the drawn window moves. */
const PARTS_PER_SCREEN = 4;

/** Which part of the canvas the view begins in. Most scrolling does not change it, and then draws nothing new. */
export function partAt(scrollLeft: number, width: number): number {
  return Math.floor((scrollLeft / width) * PARTS_PER_SCREEN);
}

/** The time that is drawn: what can be seen from within the part, and one part more on both sides. */
export function drawnWindow(axis: Axis, part: number, width: number): Span {
  const px = width / PARTS_PER_SCREEN;
  return { start: timeAt(axis, (part - 1) * px), end: timeAt(axis, (part + PARTS_PER_SCREEN + 2) * px) };
}
