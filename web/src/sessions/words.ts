/** What is said of sessions, in words. */
import type { Messages } from '../i18n/en';
import type { Formats } from '../i18n/format';
import type { Locale } from '../i18n/i18n.svelte';
import { periodMs } from '../queue/amounts';
import { clock } from '../queue/times';
import { sentence, wishesWords, type Said } from '../queue/words';
import { MINUTE } from '../time/span';
import type { Session, StartableProfile } from './types';

/** Shorter than a minute matters here: "12 s", "3 min". */
export function tookWords(milliseconds: number, t: Messages, format: Formats): string {
  const seconds = Math.round(milliseconds / 1_000);
  if (seconds < 90) return t.sessions.seconds(seconds);
  return format.length(Math.round(milliseconds / MINUTE) * MINUTE);
}

/** The server's own sentence, which is English. */
export function saidWords(said: string, locale: Locale): Said {
  return { text: sentence(said), ...(locale === 'en' ? {} : { language: 'en' as const }) };
}

/** "JupyterLab · 2 cores, 4 GiB, up to 8 h · stopped after 1 h without work". */
export function profileWords({ wishes, session }: StartableProfile, t: Messages, format: Formats): { readonly what: string; readonly terms: string } {
  const terms = [
    ...(session.idle ? [t.sessions.idleLimit(format.length(periodMs(session.idle)))] : []),
    ...(session.projects?.length ? [t.sessions.onlyFor(format.list(session.projects))] : []),
  ];
  return { what: wishesWords(wishes, t, format), terms: terms.join(' · ') };
}

/** What is to be known about how idle it is; null where nothing is. */
export function idleWords(session: Session, now: number, t: Messages, format: Formats): string | null {
  if (session.state !== 'ready') return null;
  const until = session.idle_until ? Date.parse(session.idle_until) : null;
  const kept = session.kept_until ? Date.parse(session.kept_until) : null;
  if (kept !== null && kept > now) return t.sessions.idle.kept(clock(kept, now, format));
  if (until === null) return null;
  return session.is_warned ? t.sessions.idle.warned(format.relative(until, now)) : t.sessions.idle.at(clock(until, now, format));
}

/** That its GPUs are lent while nobody works in it; null where they are not. */
export function lentWords(session: Session, now: number, t: Messages, format: Formats): string | null {
  if (!session.lends_since) return null;
  const since = clock(Date.parse(session.active_at), now, format);
  return session.is_borrowed ? t.sessions.idle.lent(since) : t.sessions.idle.offered(since);
}

/** The last lines of a log, and how many there are before them. */
export function tailOf(log: string, most: number): { readonly lines: string; readonly before: number } {
  const lines = log.replace(/\n+$/, '').split('\n');
  const before = Math.max(0, lines.length - most);
  return { lines: lines.slice(before).join('\n'), before };
}
