// A calendar as it stands: its entries, its drag, and where the keyboard is: on a time, or on an item.

import { tick } from 'svelte';
import type { Span } from '../time/span';
import { Desk } from '../timeline/desk.svelte';
import type { Grip, Point } from '../timeline/drag';
import { commandOf, type Command, type Stroke } from '../timeline/keys';
import type { Hand } from '../timeline/pointers';
import { nextStep, stepStart } from '../timeline/steps';
import type { CalendarProps, Draft, Id, Item } from '../timeline/types';
import { entriesOf } from './entries';

/** What differs between a month and a grid of hours. */
export interface Shape {
  /** The time that is shown. */
  shown(): Span;
  stepLength(): number;
  /** Where an arrow leads from a time: `x` to the right, `y` down. */
  arrow(time: number, x: number, y: number): number;
  /** How many steps an arrow moves what is dragged. */
  nudge(x: number, y: number): number;
  /** The time at a place on the screen; null outside of the days. */
  timeAt(x: number, y: number): number | null;
  /** What a click on empty time means. */
  click(by: 'mouse' | 'touch'): 'book' | 'point';
  /** What a click that only points leads to. */
  onpoint(time: number): void;
}

export interface CalendarCursor {
  readonly time: number;
  readonly item: Id | null;
}

export class CalendarDesk extends Desk<CalendarProps> {
  readonly #shape: Shape;
  #root: HTMLElement | null = null;
  #cursor = $state.raw<CalendarCursor | null>(null);

  protected readonly stepLength = $derived.by(() => this.#shape.stepLength());
  readonly entries = $derived.by(() => entriesOf(this.props().items, this.tree, this.#shape.shown()));

  /** Where Tab leads: the last place, or the present, or the first time that is shown. */
  readonly cursor: CalendarCursor = $derived.by(() => {
    const cursor = this.#cursor;
    const { start, end } = this.#shape.shown();
    if (!cursor || cursor.time < start || cursor.time >= end) {
      return { time: this.now >= start && this.now < end ? this.steps.down(this.now) : start, item: null };
    }
    return cursor.item !== null && !this.claims.byId.has(cursor.item) ? { ...cursor, item: null } : cursor;
  });

  constructor(props: () => CalendarProps, shape: Shape) {
    super(props);
    this.#shape = shape;
  }

  attach(root: HTMLElement): void {
    this.#root = root;
  }

  protected get root(): HTMLElement | null {
    return this.#root;
  }

  protected pointedAt(_: Id | null, time: number): void {
    this.#shape.onpoint(time);
  }

  arrivedAt(cursor: CalendarCursor): void {
    if (this.cursor.item !== cursor.item || cursor.item === null) this.#cursor = cursor;
  }

  /** The step under the cursor, as a new booking would take it. */
  slot(): Draft {
    const start = stepStart(this.cursor.time, this.steps);
    return { resource: this.props().resource ?? null, start, end: nextStep(start, this.steps) };
  }

  slotWords(): string {
    const slot = this.slot();
    return this.speech.draft(slot, this.session.rowOf(slot), this.session.verdictOn(slot, null));
  }

  goTo(cursor: CalendarCursor): void {
    const { start, end } = this.#shape.shown();
    if (cursor.time < start || cursor.time >= end) return;
    this.#cursor = cursor;
    if (cursor.item === null) this.session.said = this.slotWords();
    void tick().then(() => this.focus());
  }

  /** Under a pressed pointer nothing may move, so that `isStill` only gives the focus. */
  focus(isStill = false): void {
    const { item } = this.cursor;
    const slot = this.root?.querySelector<HTMLElement>('[data-slot]');
    const element = (item === null ? null : this.elementOf(item)) ?? slot;
    element?.focus({ preventScroll: true });
    if (!isStill) element?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  stroke(stroke: Stroke): boolean {
    const command = commandOf(stroke, this.session.dragging?.by === 'keys');
    return command !== null && this.#obey(command);
  }

  #obey(command: Command): boolean {
    const { cursor, session } = this;
    const item = cursor.item === null ? null : (this.claims.byId.get(cursor.item) ?? null);
    switch (command.do) {
      case 'go':
        this.goTo({ time: this.#shape.arrow(cursor.time, command.x, command.y), item: null });
        return true;
      case 'goToItem':
        this.#goToItem(command.to, item);
        return true;
      case 'toNames':
        if (cursor.item !== null) this.goTo({ ...cursor, item: null });
        return cursor.item !== null;
      case 'toNow':
        this.goTo({ time: this.steps.down(this.now), item: null });
        return true;
      case 'open':
        return this.#open(item);
      case 'book':
        this.create(this.slot());
        return true;
      case 'move':
        this.change('move', item);
        return true;
      case 'extend':
        this.change('resize-end', item);
        return true;
      case 'nudge':
        session.send({ type: 'nudge', by: this.#shape.nudge(command.x, command.y), edge: command.edge });
        return true;
      case 'finish':
        session.send({ type: 'release' });
        return true;
      case 'giveUp':
        session.send({ type: 'giveUp' });
        return true;
      default:
        return false;
    }
  }

  #goToItem(to: -1 | 1, current: Item | null): void {
    const drawn = this.entries.filter(({ item }) => this.elementOf(item.id) !== null);
    const place = current ? drawn.findIndex(({ item }) => item.id === current.id) : -1;
    const { time } = this.cursor;
    const next = current
      ? drawn[place + to]
      : to === 1
        ? drawn.find((entry) => entry.start >= time)
        : drawn.findLast((entry) => entry.start < time);
    if (next) this.goTo({ time: Math.max(next.start, this.#shape.shown().start), item: next.item.id });
  }

  #open(item: Item | null): boolean {
    const anchor = item && this.elementOf(item.id);
    if (item && anchor) this.props().onopen?.(item, anchor);
    else if (this.#shape.click('mouse') === 'point') this.#shape.onpoint(this.cursor.time);
    else this.create(this.slot());
    return true;
  }

  /** How the hand drags here; see pointers.ts. */
  hand(scroller: () => HTMLElement): Hand {
    const pointOn = (x: number, y: number): Point | null => {
      const time = this.#shape.timeAt(x, y);
      return time === null ? null : { resource: this.props().resource ?? null, time };
    };
    return {
      bounds: () => scroller().getBoundingClientRect(),
      press: (by, target, x, y) => {
        const id = target.closest<HTMLElement>('[data-item]')?.dataset.item;
        const found = id === undefined ? null : (this.claims.byId.get(id) ?? null);
        const point = pointOn(x, y);
        if (!point || target.closest('[data-opens]') || (!found && this.props().readonly)) return false;
        const item = found && { ...found, editable: this.isEditable(found) };
        const edge = target.closest<HTMLElement>('[data-grip]')?.dataset.grip as Grip | undefined;
        const grip = item ? (edge ?? 'body') : 'empty';
        this.#cursor = { time: item ? item.start : this.steps.down(point.time), item: item?.id ?? null };
        void tick().then(() => this.focus(true));
        this.session.send({ type: 'press', by, x, y, point, item, grip, click: this.#shape.click(by) });
        return true;
      },
      held: () => this.session.send({ type: 'held' }),
      move: (x, y) => {
        const point = pointOn(x, y);
        // A booking that moves keeps its resource: a calendar has no rows to choose from.
        if (point) this.session.send({ type: 'move', x, y, point: { ...point, resource: null } });
      },
      release: () => this.session.send({ type: 'release' }),
      giveUp: () => this.session.send({ type: 'giveUp' }),
      phase: () => this.session.state.phase,
      scrollBy: (left, top) => scroller().scrollBy({ left, top, behavior: 'instant' }),
    };
  }
}
