/**
 * Alternatives that are kept free for a while, so that whoever chooses one gets it. Those that are not chosen are given back at
 * once, rather than kept from others until their time is over.
 */
import { asFailure } from '../api/problem';
import type { Alternative, Reservation } from '../api/types';
import * as acts from './acts';

export class Holds {
  #held = $state.raw<ReadonlyMap<string, Reservation>>(new Map());

  /** Until when the first of them lapses, in milliseconds. */
  get until(): number | undefined {
    const moments = [...this.#held.values()].flatMap(({ terms }) => (terms.decide_by ? [Date.parse(terms.decide_by)] : []));
    return moments.length > 0 ? Math.min(...moments) : undefined;
  }

  keeps(alternative: Alternative): boolean {
    return (alternative.holds ?? []).length > 0 && (alternative.holds ?? []).every((id) => this.#held.has(id));
  }

  /** Takes note of what a refusal says is held. */
  async note(alternatives: readonly Alternative[]): Promise<void> {
    const wanted = alternatives.flatMap(({ holds, parts }) => (holds ?? []).map((id, index) => ({ id, site: parts[index]?.site.name ?? parts[0]?.site.name ?? '' })));
    const held = await Promise.all(wanted.map(({ site, id }) => acts.read(site, id)));
    this.#held = new Map(held.map((one) => [one.id, one]));
  }

  /** Makes an alternative a booking: all of its parts. */
  async take(alternative: Alternative): Promise<Reservation | undefined> {
    let taken: Reservation | undefined;
    for (const id of alternative.holds ?? []) {
      const held = this.#held.get(id);
      if (held) taken = await acts.take(held);
    }
    this.#held = new Map([...this.#held].filter(([id]) => !alternative.holds?.includes(id)));
    this.release();
    return taken;
  }

  /** Gives back all that is still held. */
  release(): void {
    const rest = [...this.#held.values()];
    this.#held = new Map();
    // What cannot be given back lapses by itself soon.
    for (const one of rest) acts.letGo(one).catch(asFailure);
  }
}
