// What part of time and of the rows is seen: the scrolled element, and the axis under it.

import { flushSync } from 'svelte';
import { lengthOf, MINUTE, type Span } from '../time/span';
import { axisAround, canvasWidth, drawnWindow, partAt, SCREENS_ASIDE, timeAt, xOf, zoomed, type Axis } from './axis';

/** A range is told once it rests, so that a page does not load what is only passed by. */
const SETTLE_MS = 120;
/** Within this what was told comes back. */
const ECHO_MS = 2000;

function isAbout(a: Span, b: Span): boolean {
  return Math.abs(a.start - b.start) <= MINUTE && Math.abs(a.end - b.end) <= MINUTE;
}

export class TimeView {
  /** Of the part that shows time, beside the names. */
  width = $state(0);
  /** Of the part that shows rows, below the scale. */
  height = $state(0);
  scrollLeft = $state(0);
  scrollTop = $state(0);
  axis = $state.raw<Axis>({ origin: 0, msPerPx: 1 });
  /** Root font size: rows grow with the text. */
  rem = $state(16);

  readonly range: Span = $derived({
    start: timeAt(this.axis, this.scrollLeft),
    end: timeAt(this.axis, this.scrollLeft + this.width),
  });
  readonly #part = $derived(this.width === 0 ? 0 : partAt(this.scrollLeft, this.width));
  readonly drawn: Span = $derived(drawnWindow(this.axis, this.#part, this.width));
  readonly canvasWidth = $derived(canvasWidth(this.width));

  #scroller: HTMLElement | null = null;
  /** What the page asked for last. */
  #given: Span;
  /** What the page was told of late, and when. */
  #told: { range: Span; at: number }[] = [];
  #settling: ReturnType<typeof setTimeout> | undefined;
  readonly #onrange: (range: Span) => void;

  constructor(range: Span, onrange: (range: Span) => void) {
    this.#given = range;
    this.#onrange = onrange;
  }

  get scroller(): HTMLElement | null {
    return this.#scroller;
  }

  /** Follows the element that scrolls; `corner` is what stays at its top left. */
  attach(scroller: HTMLElement, corner: HTMLElement): () => void {
    this.#scroller = scroller;
    const measure = () => {
      const width = scroller.clientWidth - corner.offsetWidth;
      const height = scroller.clientHeight - corner.offsetHeight;
      if (width <= 0 || (width === this.width && height === this.height)) return;
      const seen = this.width === 0 ? this.#given : this.range;
      this.rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
      this.width = width;
      this.height = height;
      // The canvas must be there before it can be scrolled.
      flushSync(() => this.#lay(seen));
      scroller.scrollLeft = this.scrollLeft;
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(scroller);
    observer.observe(corner);
    const onscroll = () => this.#scrolled();
    scroller.addEventListener('scroll', onscroll, { passive: true });
    return () => {
      observer.disconnect();
      scroller.removeEventListener('scroll', onscroll);
      clearTimeout(this.#settling);
      this.#scroller = null;
    };
  }

  /**
   * What the page wants to be seen. Often that is only what it was told: it comes back later than the hand moves on, and
   * rounded to what an address holds; to follow it then would pull the time from under the hand.
   */
  follow(range: Span): void {
    if (isAbout(range, this.#given)) return;
    this.#given = range;
    const now = performance.now();
    this.#told = this.#told.filter(({ at }) => now - at < ECHO_MS);
    const echo = this.#told.findIndex((told) => isAbout(range, told.range));
    this.#told.splice(0, echo + 1);
    if (echo === -1 && this.width > 0) this.#lay(range);
  }

  show(range: Span): void {
    this.#lay(range);
    this.#settle();
  }

  /** `factor` below 1 shows less time; `around` stays where it is, or the middle. */
  zoom(factor: number, around = (this.range.start + this.range.end) / 2): void {
    this.show(zoomed(this.range, factor, around));
  }

  pan(screens: number): void {
    const quiet = matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.#scroller?.scrollBy({ left: screens * this.width, behavior: quiet ? 'auto' : 'smooth' });
  }

  scrollBy(left: number, top: number): void {
    this.#scroller?.scrollBy({ left, top, behavior: 'instant' });
    // What follows the pointer must not wait for the event.
    this.#scrolled();
  }

  /** Scrolls as little as is needed to see a moment and a row. */
  reveal(time: number | null, top: number, height: number): void {
    const scroller = this.#scroller;
    if (!scroller) return;
    if (time !== null) {
      const margin = this.width / 12;
      const x = xOf(this.axis, time);
      if (x < this.scrollLeft + margin || x > this.scrollLeft + this.width - margin) {
        const length = lengthOf(this.range);
        const start = x < this.scrollLeft + margin ? time - length / 4 : time - (length * 3) / 4;
        this.show({ start, end: start + length });
      }
    }
    if (top < this.scrollTop) scroller.scrollTop = top;
    else if (top + height > this.scrollTop + this.height) scroller.scrollTop = top + height - this.height;
    this.#scrolled();
  }

  #lay(range: Span): void {
    this.axis = axisAround(range, this.width);
    this.scrollLeft = SCREENS_ASIDE * this.width;
    if (this.#scroller) this.#scroller.scrollLeft = this.scrollLeft;
  }

  #scrolled(): void {
    const scroller = this.#scroller;
    if (!scroller || this.width === 0) return;
    this.scrollTop = scroller.scrollTop;
    // Browsers round what they are told, and rounding must not move time.
    if (Math.abs(scroller.scrollLeft - this.scrollLeft) < 1) return;
    this.scrollLeft = scroller.scrollLeft;
    const nearEdge = this.scrollLeft < this.width || this.scrollLeft > this.canvasWidth - 2 * this.width;
    if (nearEdge) this.#lay(this.range);
    this.#settle();
  }

  #settle(): void {
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => {
      const range = { ...this.range };
      this.#told.push({ range, at: performance.now() });
      this.#onrange(range);
    }, SETTLE_MS);
  }
}
