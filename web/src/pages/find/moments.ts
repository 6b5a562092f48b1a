/**
 * From when to look: as soon as asked, and at a few beginnings of a working day after that. The server tells the earliest time
 * for each; side by side they are a choice between "now" and "when it suits me".
 */
import type { Choice } from '../../api/types';
import { snap } from '../../time/snap';
import { DAY, HOUR, MINUTE } from '../../time/span';
import { addDays, startOfDay, weekdayOf } from '../../time/zone';

const DAY_BEGINS = 9 * HOUR;
const ROUND = 15 * MINUTE;

export function momentsToAsk(earliest: number, before: number | null, zone: string): number[] {
  const first = snap(earliest, ROUND, zone, 'up');
  const midnight = startOfDay(first, zone);
  const toMonday = 8 - weekdayOf(first, zone);
  const later = [1, 2, toMonday].map((days) => addDays(midnight + DAY_BEGINS, days, zone));
  const limit = before ?? first + 56 * DAY;
  return [...new Set([first, ...later])].filter((moment) => moment === first || (moment > first && moment < limit)).sort((a, b) => a - b);
}

/** The choices of all answers, each once, by start. */
export function merged(answers: readonly (readonly Choice[])[]): Choice[] {
  const known = new Map<string, Choice>();
  for (const choice of answers.flat()) {
    const key = `${choice.site.id} ${choice.start} ${choice.resources.map(({ id }) => id).join()}`;
    if (!known.has(key)) known.set(key, choice);
  }
  return [...known.values()].sort((a, b) => Date.parse(a.start) - Date.parse(b.start));
}
