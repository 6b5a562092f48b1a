/** Which of one's bookings to be reminded of now; pure, so that it can be tested. */
import type { Reservation } from '../api/types';
import { MINUTE } from '../time/span';

export type ReminderKind = 'starts' | 'ends';

export interface Reminder {
  /** One for each booking, kind and time: a booking that was extended is reminded of again. */
  readonly key: string;
  readonly kind: ReminderKind;
  readonly booking: Reservation;
}

const AHEAD_MS = 15 * MINUTE;

export function dueReminders(bookings: readonly Reservation[], now: number, told: ReadonlySet<string>): Reminder[] {
  const isNear = (moment: string) => Date.parse(moment) > now && Date.parse(moment) - now <= AHEAD_MS;
  return bookings
    .flatMap((booking): Reminder[] => {
      if (booking.state === 'confirmed' && isNear(booking.start)) return [{ key: `${booking.id} ${booking.start}`, kind: 'starts', booking }];
      if (booking.state === 'active' && isNear(booking.end)) return [{ key: `${booking.id} ${booking.end}`, kind: 'ends', booking }];
      return [];
    })
    .filter((reminder) => !told.has(reminder.key));
}
