/**
 * "book gpu-04 tomorrow 9-12": a booking said in a line. What is not said is left open: without a day it is today, or tomorrow
 * where that time of day is past; without an end it lasts two hours.
 */
import { parseClock } from '../i18n/clock';
import { parseLength } from '../i18n/length';
import { HOUR, MINUTE, type Span } from '../time/span';
import { addDays, startOfDay, weekdayOf } from '../time/zone';

export interface Said {
  readonly resource: string;
  readonly span: Span;
}

export interface Words {
  readonly book: readonly string[];
  readonly today: readonly string[];
  readonly tomorrow: readonly string[];
  readonly for: readonly string[];
  /** From Monday; the beginning of a name is enough. */
  readonly weekdays: readonly string[];
}

const USUAL = 2 * HOUR;

/** What was said, or null where it is no booking with a time. */
export function readSentence(text: string, names: ReadonlySet<string>, words: Words, now: number, zone: string): Said | null {
  const [verb, ...rest] = text.trim().toLowerCase().split(/\s+/);
  if (!verb || !words.book.includes(verb)) return null;
  let resource: string | undefined;
  let day: number | undefined;
  let from: number | undefined;
  let to: number | undefined;
  let length: number | undefined;
  for (const [index, word] of rest.entries()) {
    const isLength = words.for.includes(rest[index - 1] ?? '') ? parseLength(word) : null;
    const range = /^([\d:.h]+)[-–]([\d:.h]+)$/.exec(word);
    if (names.has(word)) resource = word;
    else if (isLength !== null) length = isLength;
    else if (range) [from, to] = [parseClock(range[1]!) ?? undefined, parseClock(range[2]!) ?? undefined];
    else if (words.today.includes(word)) day = 0;
    else if (words.tomorrow.includes(word)) day = 1;
    else if (/^\d/.test(word)) from = parseClock(word) ?? from;
    else day = weekday(word, words, now, zone) ?? day;
  }
  if (!resource || from === undefined) return null;
  return { resource, span: spanOf({ day, from, to, length }, now, zone) };
}

function weekday(word: string, words: Words, now: number, zone: string): number | undefined {
  const index = word.length >= 3 ? words.weekdays.findIndex((name) => name.startsWith(word)) : -1;
  return index < 0 ? undefined : (index + 1 - weekdayOf(now, zone) + 7) % 7;
}

interface Parts {
  readonly day: number | undefined;
  readonly from: number;
  readonly to: number | undefined;
  readonly length: number | undefined;
}

function spanOf({ day, from, to, length }: Parts, now: number, zone: string): Span {
  const midnight = startOfDay(now, zone);
  const at = (days: number, minutes: number) => addDays(midnight, days, zone) + minutes * MINUTE;
  const first = day ?? (at(0, from) > now ? 0 : 1);
  const start = at(first, from);
  // Until an hour that is not later means over midnight.
  const end = to === undefined ? start + (length ?? USUAL) : at(to > from ? first : first + 1, to);
  return { start, end };
}
