/** Times far ahead, where nobody is in the way; others in every run, so that a server can be tested twice. */
export const DAY = 24 * 3_600_000;

const run = 100 + Math.floor(Math.random() * 1_000);

/** So many days into this run's own time, at an hour of UTC. */
export function later(days: number, hour: number): string {
  const midnight = Math.floor(Date.now() / DAY) * DAY;
  return new Date(midnight + (run + days) * DAY + hour * 3_600_000).toISOString();
}
