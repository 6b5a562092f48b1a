/**
 * Which entries of the log are wanted, and what they are called. The server's own filters want whole logins and ids; people type parts
 * of names, so the page looks itself.
 */
import type { AuditEntry } from '../../../api/types';

export interface Wanted {
  /** `reservation`, or the whole of `reservation.create`. */
  readonly action: string;
  /** Part of a name or login. */
  readonly who: string;
  /** Anything that the entry says, or the name of what it is about. */
  readonly text: string;
  readonly from: number | null;
  readonly to: number | null;
}

export type Names = ReadonlyMap<string, string>;

export function matches(entry: AuditEntry, wanted: Wanted, actor: string, names: Names): boolean {
  const at = Date.parse(entry.at);
  return (
    (wanted.from === null || at >= wanted.from) &&
    (wanted.to === null || at < wanted.to) &&
    isAction(entry.action, wanted.action) &&
    has(`${actor} ${entry.actor.person?.login ?? ''}`, wanted.who) &&
    (wanted.text === '' || has(`${about(entry, names)} ${JSON.stringify(entry)}`, wanted.text))
  );
}

function isAction(action: string, wanted: string): boolean {
  const asked = wanted.trim().toLowerCase();
  return asked === '' || action === asked || action.startsWith(`${asked}.`);
}

const has = (text: string, part: string) => text.toLowerCase().includes(part.trim().toLowerCase());

/** What it was about, by the name that people know; its id only where it has none. */
export function about(entry: AuditEntry, names: Names): string {
  const name = nameIn(entry.after) ?? nameIn(entry.before) ?? names.get(entry.subject) ?? entry.subject;
  return [entry.site?.name, name].filter(Boolean).join(' / ');
}

/** The names behind ids, as far as the entries tell them themselves. */
export function namesIn(entries: readonly AuditEntry[]): Map<string, string> {
  const names = new Map<string, string>();
  // The newest come first, and their names are the ones that hold.
  const learn = (id: unknown, name: string | undefined) => {
    if (typeof id === 'string' && name && !names.has(id)) names.set(id, name);
  };
  for (const { actor, site, subject, before, after } of entries) {
    learn(actor.person?.id, actor.person?.display_name);
    learn(site?.id, site?.name);
    for (const state of [after, before]) {
      learn(isObject(state) ? (state.id ?? subject) : undefined, nameIn(state));
    }
  }
  return names;
}

function nameIn(state: unknown): string | undefined {
  if (!isObject(state)) return undefined;
  const name = state.display_name ?? state.title ?? state.name ?? state.login ?? state.label;
  return typeof name === 'string' ? name : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
