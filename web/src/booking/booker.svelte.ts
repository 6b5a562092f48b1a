/** Sends what the panel has, and deals with a no: alternatives are kept free, or one waits. */
import { api, call } from '../api/client';
import { Intent } from '../api/intent';
import { asFailure, type Failure } from '../api/problem';
import type { Alternative, NewAnyReservation, NewReservation, NewSeries, Reservation, WaitFor } from '../api/types';
import { toasts } from '../design/toasts.svelte';
import { i18n } from '../i18n/i18n.svelte';
import * as acts from './acts';
import type { BookingDraft } from './draft.svelte';
import { Holds } from './holds.svelte';
import { requestFor } from './request';

type Booked = (reservation: Reservation | null) => void;
type Single = NewReservation | NewAnyReservation;

export class Booker {
  isBusy = $state(false);
  failure = $state.raw<Failure | undefined>();
  readonly holds = new Holds();
  #intent = new Intent();

  constructor(
    readonly draft: BookingDraft,
    readonly onbooked: Booked,
  ) {}

  /** Books it, or waits for room; where there is none, the nearest alternatives are kept free. */
  book(wait?: WaitFor): Promise<void> {
    return this.#run(async () => {
      const request = requestFor(this.draft);
      if ('rule' in request) return this.#bookSeries(request);
      const body: Single = wait ? { ...request, wait } : request;
      try {
        this.#say(await this.#post(body));
      } catch (thrown) {
        const refusal = asFailure(thrown);
        if (wait || !refusal.problem?.alternatives?.length) throw refusal;
        await this.#hold(request, refusal);
      }
    });
  }

  take(alternative: Alternative): Promise<void> {
    return this.#run(async () => this.onbooked((await this.holds.take(alternative)) ?? null));
  }

  /** The wish is another one: what was refused, and held for it, is no longer of interest. */
  changed(): void {
    this.failure = undefined;
    this.holds.release();
  }

  async #run(act: () => Promise<void>): Promise<void> {
    this.isBusy = true;
    this.failure = undefined;
    try {
      await act();
      this.#intent.fulfilled();
    } catch (thrown) {
      this.failure = asFailure(thrown);
    }
    this.isBusy = false;
  }

  async #hold(request: Single, refusal: Failure): Promise<void> {
    this.holds.release();
    try {
      // There may be room again by now, and then what was wished for is held and taken.
      this.onbooked(await acts.take(await this.#post({ ...request, hold: true })));
    } catch (thrown) {
      const alternatives = asFailure(thrown).problem?.alternatives ?? [];
      await this.holds.note(alternatives);
      // What cannot be held can still be asked for.
      throw alternatives.length > 0 ? thrown : refusal;
    }
  }

  async #post(body: Single): Promise<Reservation> {
    const params = { path: { site: this.draft.site }, header: this.#intent.keyFor(body) };
    const booked = 'wish' in body ? api.POST('/sites/{site}/reservations/any', { params, body }) : api.POST('/sites/{site}/reservations', { params, body });
    return (await call<unknown>(booked)) as Reservation;
  }

  #say(reservation: Reservation): void {
    const { said } = i18n.t.booking;
    const words = reservation.state === 'waiting' ? said.waits : reservation.state === 'pending_approval' ? said.asked : said.booked;
    toasts.say(words(reservation.title), { label: i18n.t.common.undo, run: async () => void (await acts.cancel(reservation)) });
    this.onbooked(reservation);
  }

  async #bookSeries(body: NewSeries): Promise<void> {
    const params = { path: { site: this.draft.site }, header: this.#intent.keyFor(body) };
    const series = await call(api.POST('/sites/{site}/series', { params, body }));
    const count = 'instances' in series ? (series.instances?.length ?? 0) : 0;
    toasts.say(i18n.t.booking.said.series(body.title, count));
    this.onbooked(null);
  }
}
