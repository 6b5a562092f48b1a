/** Where a browser goes once a session is ready. */

/** The session's own address, or a place below it that somebody asked for; never anywhere else. */
export function targetOf(url: string, to: string): string {
  if (!to.startsWith('/') || !URL.canParse(url)) return url;
  const front = new URL(url);
  const below = front.pathname.replace(/\/$/, '') + to;
  if (!URL.canParse(below, front)) return url;
  const wanted = new URL(below, front);
  return wanted.origin === front.origin && wanted.pathname.startsWith(front.pathname) ? wanted.href : url;
}

/** So long a session is not opened by itself again: one that sends people back here would do so for ever. */
const AGAIN_MS = 20_000;

/** Whether this start of a session may be opened by itself now; notes that it was, if so. */
export function mayOpen(memory: Pick<Storage, 'getItem' | 'setItem'>, start: string, now: number): boolean {
  const key = `berth.opened.${start}`;
  const before = Number(memory.getItem(key) ?? 0);
  if (now - before < AGAIN_MS) return false;
  memory.setItem(key, String(now));
  return true;
}
