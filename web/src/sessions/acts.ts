/** What is done with a session, and what is said afterwards. */
import { toasts } from '../design/toasts.svelte';
import { i18n } from '../i18n/i18n.svelte';
import { shown } from '../data/shown.svelte';
import { router } from '../routing/router.svelte';
import * as client from './client';
import type { Session } from './types';

/** What one click gives: long enough for a meeting and a meal. */
const KEEP = 'PT2H';

export async function stop(before: Session, reason: string): Promise<Session> {
  const after = await client.stop(before, reason);
  toasts.say(i18n.t.sessions.said.stopped(before.name));
  return after;
}

export async function keep(before: Session): Promise<Session> {
  const after = await client.keep(before, KEEP);
  toasts.say(i18n.t.sessions.said.kept(before.name, shown.format.time(after.kept_until ?? after.idle_until ?? Date.now())));
  return after;
}

export async function rename(before: Session, name: string): Promise<Session> {
  const after = await client.rename(before, name);
  toasts.say(i18n.t.sessions.said.renamed(after.name), {
    label: i18n.t.common.undo,
    run: async () => void (await client.rename(after, before.name)),
  });
  return after;
}

export async function remove(before: Session): Promise<void> {
  await client.remove(before);
  toasts.say(i18n.t.sessions.said.removed(before.name));
}

/** Starts it and goes where one sees how far it is; it opens from there. */
export async function startAgain(before: Session): Promise<void> {
  const after = await client.startAgain(before);
  watch(after);
}

export function watch({ site, id }: Session): void {
  router.go(`/sites/${site.name}/sessions/${id}`, { open: '1' });
}
