// A drag as the views live it: the machine's state, the rule's answer to its draft, and what is said of it.

import { drag, IDLE, type DragEvent, type DragState, type Outcome } from './drag';
import type { Speech } from './speech';
import type { Steps } from './steps';
import type { Callbacks, Draft, Item, Labels, Row, Verdict } from './types';
import { verdictOf, type Rules } from './verdict';

export interface SessionContext {
  readonly steps: Steps;
  readonly rules: Rules;
  readonly speech: Speech;
  readonly labels: Labels;
  readonly callbacks: Callbacks;
  /** Where the element of an item is, to put a panel beside. */
  readonly elementOf: (item: Item) => HTMLElement | null;
  /** A tap on empty time. */
  readonly onpoint: (resource: Row['id'] | null, time: number) => void;
}

export class DragSession {
  state = $state.raw<DragState>(IDLE);
  /** For the live region. */
  said = $state('');
  readonly #context: () => SessionContext;

  readonly dragging = $derived(this.state.phase === 'dragging' ? this.state : null);
  readonly draft: Draft | null = $derived(this.dragging?.draft ?? null);
  readonly verdict: Verdict | null = $derived(this.dragging && this.verdictOn(this.dragging.draft, this.dragging.item));

  constructor(context: () => SessionContext) {
    this.#context = context;
  }

  verdictOn(draft: Draft, item: Item | null): Verdict {
    return verdictOf(draft, item, this.#context().rules);
  }

  rowOf(draft: Draft): Row | null {
    return draft.resource === null ? null : (this.#context().rules.tree.byId.get(draft.resource)?.row ?? null);
  }

  send(event: DragEvent): void {
    const { steps, labels, speech } = this.#context();
    const before = this.draft;
    const [state, outcome] = drag(this.state, event, steps);
    this.state = state;
    if (state.phase === 'dragging' && state.by === 'keys' && state.draft !== before) {
      const said = speech.draft(state.draft, this.rowOf(state.draft), this.verdictOn(state.draft, state.item));
      this.said = event.type === 'begin' ? `${this.#opening(event)} ${said}` : said;
    } else if (outcome.kind === 'gaveUp') {
      this.said = labels.says.gaveUp;
    }
    this.#handOn(outcome);
  }

  #opening({ mode, item }: { mode: string; item: Item | null }): string {
    const { labels, speech } = this.#context();
    if (!item) return labels.says.creating;
    return mode === 'move' ? labels.says.moving(speech.what(item)) : labels.says.extending(speech.what(item));
  }

  #handOn(outcome: Outcome): void {
    const { callbacks, elementOf, onpoint } = this.#context();
    switch (outcome.kind) {
      case 'book':
        return callbacks.onbook?.(outcome.draft);
      case 'move':
        return callbacks.onmove?.(outcome.item, outcome.draft);
      case 'extend':
        return callbacks.onextend?.(outcome.item, outcome.draft);
      case 'open': {
        const anchor = elementOf(outcome.item);
        return anchor ? callbacks.onopen?.(outcome.item, anchor) : undefined;
      }
      case 'point':
        return onpoint(outcome.point.resource, outcome.point.time);
    }
  }
}
