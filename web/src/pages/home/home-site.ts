/** Which site `/` leads to. */
import type { SiteActivity } from '../../api/types';

/** How much the person has to do there: approvals and own sessions, work and bookings. */
function toDo({ sessions, workloads, reservations, approvals }: SiteActivity): number {
  return sessions + workloads + reservations + approvals;
}

/**
 * The site where the person has something to do, or else the member's site with the most recent activity. Among sites where
 * there is something to do, the one that was looked at last comes first, then the one with most to do.
 */
export function homeSite(mine: readonly SiteActivity[], last: string | null): string | undefined {
  const activity = (one: SiteActivity) => (one.last_activity ? Date.parse(one.last_activity) : 0);
  const isLast = (one: SiteActivity) => Number(one.site.name === last);
  const busy = mine.filter((one) => toDo(one) > 0);
  const [first] = busy.length > 0
    ? [...busy].sort((a, b) => isLast(b) - isLast(a) || toDo(b) - toDo(a) || activity(b) - activity(a))
    : [...mine].sort((a, b) => isLast(b) - isLast(a) || activity(b) - activity(a));
  return first?.site.name;
}
