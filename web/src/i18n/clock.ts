/** Times of day as people type them. */

/** `9`, `9:30`, `09.30`, `0930`, `930` as minutes after midnight; null where it is no time. */
export function parseClock(text: string): number | null {
  const found = /^\s*(\d{1,2})(?:[:.h]?(\d{2}))?\s*$/.exec(text);
  if (!found) return null;
  const [hours, minutes] = [Number(found[1]), Number(found[2] ?? 0)];
  return hours < 24 && minutes < 60 ? hours * 60 + minutes : null;
}

export function writeClock(minutes: number): string {
  const two = (count: number) => String(count).padStart(2, '0');
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}
