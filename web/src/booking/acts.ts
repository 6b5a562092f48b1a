/**
 * What can be done with bookings. Each act says what it did and offers to take it back, where that is possible; pages add
 * nothing to that, so that an act is the same wherever it is pressed.
 */
import { api, call, ifMatch } from '../api/client';
import { Intent } from '../api/intent';
import type { NewReservation, Reservation, ReservationPatch } from '../api/types';
import { toasts } from '../design/toasts.svelte';
import { i18n } from '../i18n/i18n.svelte';
import { toPeriod } from '../i18n/length';

const place = (reservation: Reservation) => ({ site: reservation.site.name, reservation: reservation.id });

export function read(site: string, reservation: string): Promise<Reservation> {
  return call(api.GET('/sites/{site}/reservations/{reservation}', { params: { path: { site, reservation } } }));
}

export function patch(reservation: Reservation, body: ReservationPatch): Promise<Reservation> {
  const params = { path: place(reservation), header: ifMatch(reservation.version) };
  return call(api.PATCH('/sites/{site}/reservations/{reservation}', { params, body }));
}

/** Another time, other resources or other words. Taking it back puts back only what was changed. */
export async function move(before: Reservation, change: ReservationPatch): Promise<Reservation> {
  const after = await patch(before, change);
  const isMoved = change.start !== undefined || change.end !== undefined || change.resources !== undefined;
  const said = isMoved ? i18n.t.booking.said.moved : i18n.t.booking.said.changed;
  const back: ReservationPatch = {
    ...(isMoved ? { start: before.start, end: before.end, resources: wantedOf(before) } : {}),
    ...(change.title === undefined ? {} : { title: before.title }),
    ...(change.privacy === undefined ? {} : { privacy: before.privacy }),
    ...(change.at_end === undefined ? {} : { at_end: before.terms.at_end ?? 'stop' }),
    ...(change.lends === undefined ? {} : { lends: before.terms.lends ?? null }),
  };
  toasts.say(said(after.title), {
    label: i18n.t.common.undo,
    run: async () => {
      await patch(after, back);
      toasts.say(i18n.t.common.undone);
    },
  });
  return after;
}

/** Longer, by so many milliseconds. */
export async function extend(before: Reservation, by: number): Promise<Reservation> {
  const after = await call(
    api.POST('/sites/{site}/reservations/{reservation}/extend', { params: { path: place(before) }, body: { by: toPeriod(by) } }),
  );
  toasts.say(i18n.t.booking.said.extended(after.title), {
    label: i18n.t.common.undo,
    run: async () => {
      await patch(after, { end: before.end });
      toasts.say(i18n.t.common.undone);
    },
  });
  return after;
}

/** Gives it up. A running one is ended, which nothing can take back; one to come can be booked again as it was. */
export async function cancel(before: Reservation, reason?: string): Promise<Reservation> {
  const params = { path: place(before), header: ifMatch(before.version) };
  const after = await call(
    api.POST('/sites/{site}/reservations/{reservation}/cancel', { params, body: reason ? { reason } : {} }),
  );
  const canReturn = ['confirmed', 'pending_approval'].includes(before.state) && !hasSecrets(before);
  toasts.say(
    i18n.t.booking.said.cancelled(before.title),
    canReturn ? { label: i18n.t.common.undo, run: () => bookAgain(before) } : undefined,
  );
  return after;
}

/** Gives a hold back without a word: nobody meant to keep it. */
export async function letGo(held: Reservation): Promise<void> {
  await call(api.POST('/sites/{site}/reservations/{reservation}/cancel', { params: { path: place(held), header: ifMatch(held.version) }, body: {} }));
}

async function bookAgain(before: Reservation): Promise<void> {
  const body: NewReservation = {
    title: before.title,
    start: before.start,
    end: before.end,
    resources: wantedOf(before),
    parameters: before.parameters,
    privacy: before.privacy,
    ...(before.terms.at_end ? { at_end: before.terms.at_end } : {}),
    ...(before.terms.lends === undefined ? {} : { lends: before.terms.lends }),
    ...(before.project ? { project: before.project.name } : {}),
  };
  const params = { path: { site: before.site.name }, header: new Intent().keyFor(body) };
  await call(api.POST('/sites/{site}/reservations', { params, body }));
  toasts.say(i18n.t.booking.said.bookedAgain(before.title));
}

// A secret is known only to the server, and is forgotten with the booking.
function hasSecrets(reservation: Reservation): boolean {
  return Object.values(reservation.parameters).some((answers) => Object.values(answers).includes('********'));
}

export async function checkIn(reservation: Reservation): Promise<Reservation> {
  const after = await call(api.POST('/sites/{site}/reservations/{reservation}/check-in', { params: { path: place(reservation) } }));
  toasts.say(i18n.t.booking.said.checkedIn);
  return after;
}

/** A hold, or an offer from the waitlist, becomes a booking. */
export async function take(reservation: Reservation): Promise<Reservation> {
  const params = { path: place(reservation), header: ifMatch(reservation.version) };
  const after = await call(api.POST('/sites/{site}/reservations/{reservation}/take', { params }));
  toasts.say(i18n.t.booking.said.booked(after.title));
  return after;
}

export async function handOver(reservation: Reservation, to: string, reason: string): Promise<Reservation> {
  const params = { path: place(reservation), header: ifMatch(reservation.version) };
  const body = { to, ...(reason ? { reason } : {}) };
  const after = await call(api.POST('/sites/{site}/reservations/{reservation}/hand-over', { params, body }));
  toasts.say(i18n.t.booking.said.handedOver(after.owner.display_name));
  return after;
}

export async function approve(reservation: Reservation): Promise<Reservation> {
  const params = { path: place(reservation), header: ifMatch(reservation.version) };
  const after = await call(api.POST('/sites/{site}/reservations/{reservation}/approve', { params }));
  toasts.say(i18n.t.booking.said.approved(after.title));
  return after;
}

export async function reject(reservation: Reservation, reason: string): Promise<Reservation> {
  const params = { path: place(reservation), header: ifMatch(reservation.version) };
  const after = await call(api.POST('/sites/{site}/reservations/{reservation}/reject', { params, body: { reason } }));
  toasts.say(i18n.t.booking.said.rejected(after.title));
  return after;
}

export function wantedOf(reservation: Reservation): { resource: string; amount?: number }[] {
  return reservation.resources.map(({ resource, amount }) => ({ resource: resource.name, ...(amount ? { amount } : {}) }));
}
