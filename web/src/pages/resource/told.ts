/** Whom a change of status concerns. */
import type { CalendarEntry, PersonRef } from '../../api/types';

export interface Told {
  readonly person: PersonRef;
  /** Their bookings, by reservation. */
  readonly bookings: readonly CalendarEntry[];
}

/** Everyone with a booking among these, each once; a booking of several parts counts once. */
export function toldOf(entries: readonly CalendarEntry[]): Told[] {
  const people = new Map<string, { person: PersonRef; bookings: Map<string, CalendarEntry> }>();
  for (const entry of entries) {
    if (!entry.owner || !entry.reservation) continue;
    const known = people.get(entry.owner.id) ?? { person: entry.owner, bookings: new Map() };
    people.set(entry.owner.id, known);
    if (!known.bookings.has(entry.reservation)) known.bookings.set(entry.reservation, entry);
  }
  return [...people.values()]
    .map(({ person, bookings }) => ({ person, bookings: [...bookings.values()] }))
    .sort((a, b) => b.bookings.length - a.bookings.length);
}
