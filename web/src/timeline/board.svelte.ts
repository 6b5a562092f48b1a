// The timeline as it stands: what follows from what it was given, what of it is drawn, and where the keyboard is.

import { tick } from 'svelte';
import { stepFor } from '../time/snap';
import { timeAt } from './axis';
import { bandWork, nodeBands } from './bands';
import { makeClaims } from './claims';
import { alongRows, alongTime, placeAt, toItem, type Cursor, type Ground } from './cursor';
import { Desk } from './desk.svelte';
import type { Point } from './drag';
import { commandOf, type Command, type Stroke } from './keys';
import { lanesOn } from './lanes';
import { layOut, rowAt, rowsNear } from './rows';
import { nextStep, stepStart } from './steps';
import { visibleNodes, type Node } from './tree';
import type { Draft, Id, Item, TimelineProps } from './types';
import { TimeView } from './view.svelte';

const ROW_REM = 2.125;
const LANE_REM = 1.375;
/** More lanes than this share the room of these. */
const LANES_MAX = 8;
export const ZOOM_STEP = 0.7;

export class Board extends Desk<TimelineProps> {
  readonly view: TimeView;
  #cursor = $state.raw<Cursor | null>(null);

  /** What is drawn: the runs that overlap on a row are one item, and so are those in a node. */
  readonly shown = $derived.by(() => {
    const { items } = this.props();
    const banded = bandWork(items, (id) => this.tree.byId.get(id)?.row.capacity?.amount ?? null);
    return makeClaims([...banded, ...nodeBands(banded, this.tree, this.claims)]);
  });
  readonly visible = $derived.by(() => visibleNodes(this.tree, this.props().folded, this.props().filter ?? null));
  readonly #places = $derived(new Map(this.visible.map((node, i) => [node.row.id, i])));
  readonly lanes = $derived(this.visible.map((node) => lanesOn(this.shown, node.row.id)));
  readonly layout = $derived(layOut(this.lanes.map(({ count }) => this.#heightOf(count))));
  readonly #near = $derived.by(() => rowsNear(this.layout, this.view.scrollTop, this.view.height));
  readonly #first = $derived(this.#near.first);
  readonly #last = $derived(this.#near.last);

  protected readonly stepLength = $derived.by(() => stepFor(this.view.axis.msPerPx, this.props().step));

  /** Where Tab leads: the last place, which follows its item to another row; or the first name while there is none. */
  readonly cursor: Cursor | null = $derived.by(() => {
    const cursor = this.#cursor;
    const item = cursor && this.#itemAt(cursor);
    if (item && this.#places.has(item.resource)) return { ...cursor!, row: item.resource };
    if (cursor && this.#places.has(cursor.row)) return { ...cursor, item: null };
    const first = this.visible[0];
    return first ? { row: first.row.id, part: 'name', time: this.now, item: null } : null;
  });

  /** The places of the rows that are drawn; the one with the keyboard always is, or the focus would be lost. */
  readonly drawnRows: readonly number[] = $derived.by(() => {
    if (this.view.width === 0) return [];
    const places = Array.from({ length: this.#last - this.#first }, (_, i) => this.#first + i);
    const active = this.cursor ? (this.#places.get(this.cursor.row) ?? -1) : -1;
    if (active < 0 || (active >= this.#first && active < this.#last)) return places;
    return active < this.#first ? [active, ...places] : [...places, active];
  });

  constructor(props: () => TimelineProps) {
    super(props);
    this.view = new TimeView(props().range, (range) => {
      this.session.said = this.labels.says.range(this.format.span(range));
      props().onrange?.(range);
    });
  }

  protected get root(): HTMLElement | null {
    return this.view.scroller;
  }

  protected pointedAt(resource: Id | null, time: number): void {
    if (resource !== null) this.goTo(this.#placed(resource, time));
  }

  #placed(row: Id, time: number): Cursor {
    return placeAt({ row, part: 'time', time, item: null }, row, time, this.#ground);
  }

  get #ground(): Ground {
    return { visible: this.visible, claims: this.shown, steps: this.steps };
  }

  #heightOf(lanes: number): number {
    const { rem } = this.view;
    return Math.round(lanes === 1 ? ROW_REM * rem : (Math.min(lanes, LANES_MAX) * LANE_REM + 0.5) * rem);
  }

  placeOf(row: Id): number {
    return this.#places.get(row) ?? -1;
  }

  /** What is under a point of the canvas. */
  pointAt(x: number, y: number): Point {
    const place = rowAt(this.layout, y);
    return { resource: this.visible[place]?.row.id ?? null, time: timeAt(this.view.axis, x) };
  }

  /** A hand came before the keys; they go on where it was. */
  pressedAt({ resource, time }: Point, item: Id | null): void {
    if (resource === null) return;
    this.#cursor = item === null ? this.#placed(resource, time) : { row: resource, part: 'time', time, item };
    void tick().then(() => this.focus());
  }

  /** The focus came here by itself: by Tab or a click. */
  arrivedAt(cursor: Omit<Cursor, 'time'>): void {
    const item = cursor.item === null ? null : this.shown.byId.get(cursor.item);
    const isThere = this.#cursor?.row === cursor.row && this.#cursor.item === cursor.item && this.#cursor.part === cursor.part;
    if (!isThere) this.#cursor = { ...cursor, time: item?.start ?? this.#cursor?.time ?? this.#entryTime() };
  }

  goTo(cursor: Cursor): void {
    const before = this.cursor;
    this.#cursor = cursor;
    const place = this.placeOf(cursor.row);
    const top = this.layout.tops[place] ?? 0;
    this.view.reveal(cursor.part === 'time' ? cursor.time : null, top, (this.layout.tops[place + 1] ?? top) - top);
    const isEmptyTime = cursor.part === 'time' && cursor.item === null;
    const staysInCell = before?.row === cursor.row && before.part === 'time' && before.item === null;
    if (isEmptyTime && staysInCell) this.session.said = this.slotWords(cursor);
    void tick().then(() => this.focus());
  }

  /** Gives the focus to where the cursor is; to the name of the row where its item is out of sight. */
  focus(): void {
    if (!this.cursor) return;
    const { row, part, item } = this.cursor;
    const place = part === 'name' || item !== null ? '[data-part="name"]' : '[data-slot]';
    const cell = this.root?.querySelector<HTMLElement>(`[data-row="${CSS.escape(row)}"] ${place}`);
    const element = (item === null ? null : this.elementOf(item)) ?? cell;
    element?.focus({ preventScroll: true });
  }

  /** The step under the cursor, as a new booking would take it. */
  slotAt(cursor: Cursor): Draft {
    const start = stepStart(cursor.time, this.steps);
    // Beside an item the step may begin within it: what is meant is the time that the cursor stands on.
    const from = Math.max(start, Math.min(cursor.time, nextStep(start, this.steps) - 1));
    return { resource: cursor.row, start: from, end: nextStep(from, this.steps) };
  }

  slotWords(cursor: Cursor): string {
    const slot = this.slotAt(cursor);
    return this.speech.draft(slot, this.session.rowOf(slot), this.session.verdictOn(slot, null));
  }

  /** Whether the key meant something here. */
  stroke(stroke: Stroke): boolean {
    const command = commandOf(stroke, this.session.dragging?.by === 'keys');
    if (!command || !this.cursor) return false;
    this.#obey(command, this.cursor);
    return true;
  }

  #obey(command: Command, cursor: Cursor): void {
    const { view, session } = this;
    switch (command.do) {
      case 'go':
        return command.y !== 0 ? this.goTo(alongRows(cursor, command.y, this.#ground)) : this.#goAcross(command.x as -1 | 1, cursor);
      case 'goToItem':
        return this.goTo(toItem({ ...cursor, part: 'time' }, command.to, this.#ground));
      case 'page':
        return this.goTo(alongRows(cursor, command.by * this.#rowsPerPage(), this.#ground));
      case 'pan':
        return view.pan(command.by / 2);
      case 'zoom':
        return view.zoom(command.by === 1 ? ZOOM_STEP : 1 / ZOOM_STEP, cursor.part === 'time' ? cursor.time : undefined);
      case 'toNames':
        return this.goTo({ ...cursor, part: 'name', item: null });
      case 'toNow':
        return this.toNow(cursor);
      case 'open':
        return this.#open(cursor);
      case 'book':
        return this.#book(cursor);
      case 'move':
        return this.change('move', this.#itemAt(cursor));
      case 'extend':
        return this.change('resize-end', this.#itemAt(cursor));
      case 'nudge':
        return this.#nudge(command.x, command.y, command.edge);
      case 'finish':
        return session.send({ type: 'release' });
      case 'giveUp':
        return session.send({ type: 'giveUp' });
    }
  }

  #goAcross(to: -1 | 1, cursor: Cursor): void {
    if (cursor.part === 'time') return this.goTo(alongTime(cursor, to, this.#ground));
    const node = this.tree.byId.get(cursor.row)!;
    const isFolded = this.props().folded.has(cursor.row);
    const hasChildren = node.children.length > 0;
    if (to === 1 && hasChildren && isFolded) return this.toggle(node);
    if (to === -1 && hasChildren && !isFolded) return this.toggle(node);
    if (to === -1) return node.parent ? this.goTo({ ...cursor, row: node.parent.row.id }) : undefined;
    this.goTo(this.#inTime(cursor));
  }

  toggle(node: Node): void {
    this.props().ontogglefold?.(node.row, !this.props().folded.has(node.row.id));
  }

  toNow(cursor = this.cursor): void {
    const length = this.view.range.end - this.view.range.start;
    const start = this.now - length / 5;
    this.view.show({ start, end: start + length });
    if (cursor?.part === 'time') this.goTo(placeAt(cursor, cursor.row, this.now, this.#ground));
  }

  /** The cursor on time: where it was last, or where one looks. */
  #inTime(cursor: Cursor): Cursor {
    if (cursor.part === 'time') return cursor;
    const { start, end } = this.view.range;
    const time = cursor.time >= start && cursor.time < end ? cursor.time : this.#entryTime();
    return placeAt({ ...cursor, part: 'time' }, cursor.row, time, this.#ground);
  }

  #entryTime(): number {
    const { start, end } = this.view.range;
    return this.now >= start && this.now < end ? this.steps.earliest : this.steps.up(start);
  }

  #rowsPerPage(): number {
    return Math.max(1, Math.floor(this.view.height / (ROW_REM * this.view.rem)) - 1);
  }

  #open(cursor: Cursor): void {
    const { onopen, onopenrow } = this.props();
    if (cursor.part === 'name') {
      const anchor = document.activeElement as HTMLElement;
      return onopenrow?.(this.tree.byId.get(cursor.row)!.row, anchor);
    }
    const item = this.#itemAt(cursor);
    if (!item) return this.#book(cursor);
    const anchor = this.elementOf(item.id);
    if (anchor) onopen?.(item, anchor);
  }

  #itemAt(cursor: Cursor): Item | null {
    return cursor.item === null ? null : (this.shown.byId.get(cursor.item) ?? null);
  }

  #book(cursor: Cursor): void {
    const there = this.#inTime(cursor);
    if (cursor.part === 'name') this.goTo(there);
    this.create(this.slotAt(there));
  }

  #nudge(x: -1 | 0 | 1, y: -1 | 0 | 1, edge: 'start' | 'end'): void {
    if (x !== 0) this.session.send({ type: 'nudge', by: x, edge });
    else {
      const place = this.placeOf(this.session.draft?.resource ?? '');
      const target = this.visible[place + y];
      if (target) this.session.send({ type: 'toRow', resource: target.row.id });
    }
    const draft = this.session.draft;
    const place = draft?.resource ? this.placeOf(draft.resource) : -1;
    if (!draft || place < 0) return;
    const top = this.layout.tops[place]!;
    this.view.reveal(edge === 'start' ? draft.start : draft.end, top, this.layout.tops[place + 1]! - top);
  }
}
