// Mouse, pen and touch, told to whoever drags. A mouse drags at once; a finger scrolls, and drags after resting; two
// fingers and the wheel with Ctrl zoom.

import { HOLD_MS } from './drag';

export interface Hand {
  /** Whether what is under the pointer can be pressed. */
  press(by: 'mouse' | 'touch', target: Element, x: number, y: number): boolean;
  held(): void;
  move(x: number, y: number): void;
  release(): void;
  giveUp(): void;
  phase(): 'idle' | 'pressed' | 'dragging';
  /** Called on every frame in which a drag rests near an edge, with how far to scroll. */
  scrollBy(left: number, top: number): void;
  /** `factor` below 1 shows less. */
  zoom?(factor: number, x: number): void;
  /** The part of the element in which a drag does not scroll; measured when a press begins. */
  bounds(): DOMRect;
}

/** So near an edge a drag scrolls, and the nearer the faster. */
const EDGE_PX = 48;
const SCROLL_PX_MAX = 18;
/** Whoever begins near an edge does not mean it until they go on towards it. */
const MEANT_PX = 8;

export function pointers(element: HTMLElement, hand: Hand): () => void {
  const aborter = new AbortController();
  const { signal } = aborter;
  let x = 0;
  let y = 0;
  let fromX = 0;
  let fromY = 0;
  let isDown = false;
  let bounds = new DOMRect();
  let frame = 0;
  let holding: ReturnType<typeof setTimeout> | undefined;
  let pinch: number | null = null;

  const isDragging = () => isDown && hand.phase() === 'dragging';
  const begin = (by: 'mouse' | 'touch', target: EventTarget | null, atX: number, atY: number): boolean => {
    if (!(target instanceof Element) || !hand.press(by, target, atX, atY)) return false;
    [x, y, fromX, fromY, isDown] = [atX, atY, atX, atY, true];
    bounds = hand.bounds();
    return true;
  };
  const follow = (atX: number, atY: number) => {
    [x, y] = [atX, atY];
    hand.move(x, y);
    if (isDragging()) frame ||= requestAnimationFrame(scrollAtEdges);
  };
  const end = (act: () => void) => {
    if (!isDown) return;
    isDown = false;
    clearTimeout(holding);
    cancelAnimationFrame(frame);
    frame = 0;
    act();
  };
  const scrollAtEdges = () => {
    frame = 0;
    if (!isDragging()) return;
    const left = pull(x, fromX, bounds.left, bounds.right);
    const top = pull(y, fromY, bounds.top, bounds.bottom);
    if (left === 0 && top === 0) return;
    hand.scrollBy(left, top);
    hand.move(x, y);
    frame = requestAnimationFrame(scrollAtEdges);
  };

  element.addEventListener(
    'pointerdown',
    (event) => {
      if (event.pointerType !== 'touch' && event.button === 0) begin('mouse', event.target, event.clientX, event.clientY);
    },
    { signal },
  );
  // The focus is placed by whoever is pressed on, and not by the browser, which would look for it further out.
  element.addEventListener('mousedown', (event) => isDown && event.preventDefault(), { signal });
  window.addEventListener(
    'pointermove',
    (event) => {
      if (isDown && event.pointerType !== 'touch') follow(event.clientX, event.clientY);
    },
    { signal },
  );
  window.addEventListener(
    'pointerup',
    (event) => {
      if (event.pointerType !== 'touch') end(() => hand.release());
    },
    { signal },
  );
  window.addEventListener(
    'keydown',
    (event) => {
      if (event.key !== 'Escape' || !isDown) return;
      event.preventDefault();
      event.stopPropagation();
      end(() => hand.giveUp());
    },
    { signal, capture: true },
  );

  element.addEventListener(
    'touchstart',
    (event) => {
      const [first, second] = [event.touches[0], event.touches[1]];
      if (first && second && hand.zoom) {
        end(() => hand.giveUp());
        pinch = spread(first, second);
        return;
      }
      if (!first || !begin('touch', event.target, first.clientX, first.clientY)) return;
      holding = setTimeout(() => {
        hand.held();
        if (isDragging()) navigator.vibrate?.(10);
      }, HOLD_MS);
    },
    { signal, passive: true },
  );
  element.addEventListener(
    'touchmove',
    (event) => {
      const [first, second] = [event.touches[0], event.touches[1]];
      if (pinch !== null && first && second) {
        event.preventDefault();
        const now = spread(first, second);
        hand.zoom?.(pinch / now, (first.clientX + second.clientX) / 2);
        pinch = now;
      } else if (isDown && first) {
        if (isDragging()) event.preventDefault();
        follow(first.clientX, first.clientY);
        if (hand.phase() === 'idle') end(() => {});
      }
    },
    { signal, passive: false },
  );
  element.addEventListener(
    'touchend',
    (event) => {
      if (event.touches.length < 2) pinch = null;
      if (event.touches.length === 0) end(() => hand.release());
    },
    { signal },
  );
  element.addEventListener('touchcancel', () => end(() => hand.giveUp()), { signal });
  element.addEventListener(
    'contextmenu',
    (event) => {
      // A long press would open it over the drag.
      if (isDragging()) event.preventDefault();
    },
    { signal },
  );
  if (hand.zoom) {
    element.addEventListener(
      'wheel',
      (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        hand.zoom?.(Math.exp(event.deltaY * (event.deltaMode === 0 ? 0.004 : 0.06)), event.clientX);
      },
      { signal, passive: false },
    );
  }
  return () => {
    end(() => hand.giveUp());
    aborter.abort();
  };
}

function spread(a: Touch, b: Touch): number {
  return Math.max(10, Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY));
}

/** How far to scroll: towards an edge that is near, and only for a pointer that went towards it since it was pressed. */
function pull(at: number, from: number, low: number, high: number): number {
  const isNearLow = at < low + EDGE_PX && at < from - MEANT_PX;
  const isNearHigh = at > high - EDGE_PX && at > from + MEANT_PX;
  const depth = isNearLow ? at - (low + EDGE_PX) : isNearHigh ? at - (high - EDGE_PX) : 0;
  return Math.max(-1, Math.min(1, depth / EDGE_PX)) * SCROLL_PX_MAX;
}
