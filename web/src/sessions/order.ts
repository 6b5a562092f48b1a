/** The order of lists of sessions and of what can be started; and what each person has. */
import { isLive, type Session, type StartableProfile } from './types';

/** What is on comes first, and of those what was begun last; then what is over, the latest first. */
export function inOrder(sessions: readonly Session[]): Session[] {
  return sessions.toSorted((a, b) => Number(isLive(b.state)) - Number(isLive(a.state)) || Date.parse(b.since) - Date.parse(a.since) || a.name.localeCompare(b.name));
}

/** What one started last comes first, and what cannot be started last. */
export function byLastUse(profiles: readonly StartableProfile[], mine: readonly Session[]): StartableProfile[] {
  const last = (name: string) => Math.max(0, ...mine.filter(({ profile }) => profile === name).map(({ created_at, active_at }) => Math.max(Date.parse(created_at), Date.parse(active_at))));
  return profiles.toSorted((a, b) => Number(canStart(b)) - Number(canStart(a)) || last(b.name) - last(a.name));
}

export function canStart({ paused, app }: StartableProfile): boolean {
  return !paused && app !== undefined;
}

export interface Activity {
  readonly person: Session['owner'];
  readonly sessions: number;
  readonly live: number;
  readonly memoryMib: number;
  /** When they last did something, in milliseconds. */
  readonly activeAt: number;
}

/** What each person has, those who were active last first. */
export function activityOf(sessions: readonly Session[]): Activity[] {
  const people = new Map<string, Activity>();
  for (const { owner, state, used, active_at } of sessions) {
    const before = people.get(owner.id) ?? { person: owner, sessions: 0, live: 0, memoryMib: 0, activeAt: 0 };
    people.set(owner.id, {
      person: owner,
      sessions: before.sessions + 1,
      live: before.live + (isLive(state) ? 1 : 0),
      memoryMib: before.memoryMib + (used?.memory_mib ?? 0),
      activeAt: Math.max(before.activeAt, Date.parse(active_at)),
    });
  }
  return [...people.values()].sort((a, b) => b.activeAt - a.activeAt);
}
