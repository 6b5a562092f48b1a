// What the timeline and the calendars share: the resources and items as the rule sees them, their words, and the drag.

import { timeFormat } from '../time/format';
import { snap } from '../time/snap';
import { HOUR, MINUTE } from '../time/span';
import { makeClaims } from './claims';
import { presentTime } from './clock';
import { DragSession } from './session.svelte';
import { makeSpeech } from './speech';
import { makeSteps, type Steps } from './steps';
import { makeTree } from './tree';
import type { Draft, Id, Item, ViewProps } from './types';
import type { Rules } from './verdict';

/** Now is rounded up to this where no policy has a step of its own. */
const FINEST_STEP = 5 * MINUTE;

export abstract class Desk<Props extends ViewProps> {
  protected readonly props: () => Props;
  readonly session: DragSession;

  readonly now = $derived(presentTime());
  readonly tree = $derived.by(() => makeTree(this.props().rows));
  readonly claims = $derived.by(() => makeClaims(this.props().items));
  readonly labels = $derived.by(() => this.props().labels);
  readonly format = $derived.by(() => timeFormat(this.props().locale, this.props().zone));
  readonly speech = $derived.by(() => makeSpeech(this.labels, this.format));
  readonly steps: Steps = $derived.by(() => {
    const { zone, step, usualLength = HOUR } = this.props();
    const earliest = snap(this.now, step ?? FINEST_STEP, zone, 'up');
    return makeSteps({ length: this.stepLength, zone, earliest, usualLength });
  });
  readonly #rules: Rules = $derived.by(() => ({
    tree: this.tree,
    claims: this.claims,
    now: this.now,
    words: this.labels.verdict,
    judge: this.props().judge,
  }));

  /** A booking that is drawn or asked about, and the item that it would replace. */
  readonly ghost: { draft: Draft; item: Item | null } | null = $derived.by(() => {
    const { dragging } = this.session;
    if (dragging) return dragging;
    const { draft } = this.props();
    return draft ? { draft, item: null } : null;
  });

  constructor(props: () => Props) {
    this.props = props;
    this.session = new DragSession(() => ({
      steps: this.steps,
      rules: this.#rules,
      speech: this.speech,
      labels: this.labels,
      callbacks: this.props(),
      elementOf: (item) => this.elementOf(item.id),
      onpoint: (resource, time) => this.pointedAt(resource, time),
    }));
  }

  /** How fine a drag is here. */
  protected abstract readonly stepLength: number;
  /** The element that holds all items. */
  protected abstract get root(): HTMLElement | null;
  /** A finger tapped on empty time. */
  protected abstract pointedAt(resource: Id | null, time: number): void;

  elementOf(item: Id): HTMLElement | null {
    return this.root?.querySelector<HTMLElement>(`[data-item="${CSS.escape(item)}"]`) ?? null;
  }

  isEditable(item: Item): boolean {
    return item.editable && !this.props().readonly;
  }

  /** Begins what a key asked for; says why not where it may not be. */
  protected change(mode: 'move' | 'resize-end', item: Item | null): void {
    if (!item) return;
    if (!this.isEditable(item)) {
      this.session.said = this.labels.says.cannotEdit(this.speech.what(item));
      return;
    }
    const { resource, start, end, amount } = item;
    this.session.send({ type: 'begin', mode, item, draft: { resource, start, end, amount } });
  }

  protected create(draft: Draft): void {
    if (!this.props().readonly) this.session.send({ type: 'begin', mode: 'create', item: null, draft });
  }
}
