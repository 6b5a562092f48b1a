// The timeline as it stands: what it was given, what follows from that, and where the keyboard is. The components draw it.

import { tick } from 'svelte';
import { timeFormat } from '../time/format';
import { snap, stepFor } from '../time/snap';
import { HOUR, MINUTE } from '../time/span';
import { timeAt } from './axis';
import { makeClaims } from './claims';
import { presentTime } from './clock';
import { alongRows, alongTime, placeAt, toItem, type Cursor, type Ground } from './cursor';
import { stepStart, type Mode, type Point, type Steps } from './drag';
import { commandOf, type Command, type Stroke } from './keys';
import { lanesOn } from './lanes';
import { layOut, rowAt, rowsNear } from './rows';
import { DragSession } from './session.svelte';
import { makeSpeech } from './speech';
import { makeTree, visibleNodes, type Node } from './tree';
import type { Draft, Id, Item, TimelineProps } from './types';
import type { Rules } from './verdict';
import { TimeView } from './view.svelte';

const ROW_REM = 2.125;
const LANE_REM = 1.375;
/** More lanes than this share the room of these. */
const LANES_MAX = 8;
const FINEST_STEP = 5 * MINUTE;
const ZOOM_STEP = 0.7;

export class Board {
  readonly #props: () => TimelineProps;
  readonly view: TimeView;
  readonly session: DragSession;
  #cursor = $state.raw<Cursor | null>(null);

  readonly now = $derived(presentTime());
  readonly tree = $derived.by(() => makeTree(this.#props().rows));
  readonly claims = $derived.by(() => makeClaims(this.#props().items));
  readonly visible = $derived.by(() => visibleNodes(this.tree, this.#props().folded, this.#props().filter ?? null));
  readonly #places = $derived(new Map(this.visible.map((node, i) => [node.row.id, i])));
  readonly lanes = $derived(this.visible.map((node) => lanesOn(this.claims, node.row.id)));
  readonly layout = $derived(layOut(this.lanes.map(({ count }) => this.#heightOf(count))));
  readonly #near = $derived.by(() => rowsNear(this.layout, this.view.scrollTop, this.view.height));
  readonly #first = $derived(this.#near.first);
  readonly #last = $derived(this.#near.last);

  readonly format = $derived.by(() => timeFormat(this.#props().locale, this.#props().zone));
  readonly speech = $derived.by(() => makeSpeech(this.#props().labels, this.format));
  readonly labels = $derived.by(() => this.#props().labels);
  readonly #step = $derived.by(() => stepFor(this.view.axis.msPerPx, this.#props().step));
  readonly steps: Steps = $derived.by(() => {
    const { zone, step, usualLength = HOUR } = this.#props();
    const length = this.#step;
    return {
      down: (time) => snap(time, length, zone, 'down'),
      near: (time) => snap(time, length, zone, 'near'),
      up: (time) => snap(time, length, zone, 'up'),
      length,
      earliest: snap(this.now, step ?? FINEST_STEP, zone, 'up'),
      usualLength: Math.max(usualLength, length),
    };
  });
  readonly #rules: Rules = $derived.by(() => ({
    tree: this.tree,
    claims: this.claims,
    now: this.now,
    words: this.labels.verdict,
    judge: this.#props().judge,
  }));

  /** Where Tab leads: the last place, or the first name while there is none. */
  readonly cursor: Cursor | null = $derived.by(() => {
    const cursor = this.#cursor;
    if (cursor && this.#places.has(cursor.row)) {
      const isGone = cursor.item !== null && this.claims.byId.get(cursor.item)?.resource !== cursor.row;
      return isGone ? { ...cursor, item: null } : cursor;
    }
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

  /** A booking that is drawn or asked about, and the item that it would replace. */
  readonly ghost: { draft: Draft; item: Item | null } | null = $derived.by(() => {
    const { dragging } = this.session;
    if (dragging) return dragging;
    const draft = this.#props().draft;
    return draft ? { draft, item: null } : null;
  });

  constructor(props: () => TimelineProps) {
    this.#props = props;
    this.view = new TimeView(props().range, (range) => {
      this.session.said = this.labels.says.range(this.format.span(range));
      props().onrange?.(range);
    });
    this.session = new DragSession(() => ({
      steps: this.steps,
      rules: this.#rules,
      speech: this.speech,
      labels: this.labels,
      callbacks: props(),
      elementOf: (item) => this.elementOf(item.id),
      onpoint: (resource, time) => {
        if (resource !== null) this.goTo(placeAt({ row: resource, part: 'time', time, item: null }, resource, time, this.#ground));
      },
    }));
  }

  get #ground(): Ground {
    return { visible: this.visible, claims: this.claims, steps: this.steps };
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

  elementOf(item: Id): HTMLElement | null {
    return this.view.scroller?.querySelector<HTMLElement>(`[data-item="${CSS.escape(item)}"]`) ?? null;
  }

  isEditable(item: Item): boolean {
    return item.editable && !this.#props().readonly;
  }

  /** A hand came before the keys; they go on where it was. */
  pressedAt({ resource, time }: Point): void {
    if (resource !== null) this.#cursor = placeAt({ row: resource, part: 'time', time, item: null }, resource, time, this.#ground);
  }

  /** The focus came here by itself: by Tab or a click. */
  arrivedAt(cursor: Omit<Cursor, 'time'>): void {
    const item = cursor.item === null ? null : this.claims.byId.get(cursor.item);
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
    void tick().then(() => this.#focus(cursor));
  }

  #focus({ row, part, item }: Cursor): void {
    const cell = `[data-row="${CSS.escape(row)}"] [data-part="${part}"]`;
    const element = item === null ? this.view.scroller?.querySelector<HTMLElement>(cell) : this.elementOf(item);
    element?.focus({ preventScroll: true });
  }

  /** The step under the cursor, as a new booking would take it. */
  slotAt(cursor: Cursor): Draft {
    const start = stepStart(cursor.time, this.steps);
    // Beside an item the step may begin within it: what is meant is the time that the cursor stands on.
    const from = Math.max(start, Math.min(cursor.time, this.steps.up(start + 1) - 1));
    return { resource: cursor.row, start: from, end: this.steps.up(from + 1) };
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
        return this.#begin('create', null, this.slotAt(this.#inTime(cursor)));
      case 'move':
        return this.#change('move', cursor);
      case 'extend':
        return this.#change('resize-end', cursor);
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
    const isFolded = this.#props().folded.has(cursor.row);
    const hasChildren = node.children.length > 0;
    if (to === 1 && hasChildren && isFolded) return this.toggle(node);
    if (to === -1 && hasChildren && !isFolded) return this.toggle(node);
    if (to === -1) return node.parent ? this.goTo({ ...cursor, row: node.parent.row.id }) : undefined;
    this.goTo(this.#inTime(cursor));
  }

  toggle(node: Node): void {
    this.#props().ontogglefold?.(node.row, !this.#props().folded.has(node.row.id));
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
    const { onopen, onopenrow } = this.#props();
    if (cursor.part === 'name') {
      const anchor = document.activeElement as HTMLElement;
      return onopenrow?.(this.tree.byId.get(cursor.row)!.row, anchor);
    }
    const item = cursor.item === null ? null : this.claims.byId.get(cursor.item);
    if (!item) return this.#begin('create', null, this.slotAt(cursor));
    const anchor = this.elementOf(item.id);
    if (anchor) onopen?.(item, anchor);
  }

  #begin(mode: Mode, item: Item | null, draft: Draft): void {
    if (this.#props().readonly) return;
    if (item === null && this.cursor?.part === 'name') this.goTo(this.#inTime(this.cursor));
    this.session.send({ type: 'begin', mode, item, draft });
  }

  #change(mode: 'move' | 'resize-end', cursor: Cursor): void {
    const item = cursor.item === null ? null : this.claims.byId.get(cursor.item);
    if (!item) return;
    if (!this.isEditable(item)) {
      this.session.said = this.labels.says.cannotEdit(this.speech.what(item));
      return;
    }
    const { resource, start, end, amount } = item;
    this.#begin(mode, item, { resource, start, end, amount });
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
