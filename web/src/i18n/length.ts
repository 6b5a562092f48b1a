/** Lengths of time as the API writes them: `PT2H30M` in requests, `12h` and `14d` in policies. */
import { DAY, HOUR, MINUTE } from '../time/span';

/** `PT1H30M`; only whole minutes, which is all that a person asks for here. */
export function toPeriod(milliseconds: number): string {
  const minutes = Math.max(1, Math.round(milliseconds / MINUTE));
  const hours = Math.floor(minutes / 60);
  const rest = minutes % 60;
  return `PT${hours > 0 ? `${hours}H` : ''}${rest > 0 ? `${rest}M` : ''}`;
}

/** What the API writes back; null where it is no period. */
export function readPeriod(text: string): number | null {
  const found = /^PT(?:(\d+)H)?(?:(\d+)M)?(?:\d+S)?$/.exec(text);
  return found ? Number(found[1] ?? 0) * HOUR + Number(found[2] ?? 0) * MINUTE : null;
}

const UNITS: Record<string, number> = { w: 7 * DAY, d: DAY, h: HOUR, m: MINUTE, min: MINUTE };

/** What a person or a policy writes: `90m`, `2h30m`, `1.5h`, `3d`; null where it is not a length. */
export function parseLength(text: string): number | null {
  const compact = text.toLowerCase().replace(/\s+/g, '').replace(',', '.');
  if (!/^(\d+(\.\d+)?(w|d|h|min|m))+$/.test(compact)) return null;
  let total = 0;
  for (const [, count, unit] of compact.matchAll(/(\d+(?:\.\d+)?)(w|d|h|min|m)/g)) {
    total += Number(count) * (UNITS[unit ?? ''] ?? 0);
  }
  return total > 0 ? Math.round(total / MINUTE) * MINUTE : null;
}

/** The same length as a person would write it back: `2h30m`. */
export function writeLength(milliseconds: number): string {
  let minutes = Math.round(milliseconds / MINUTE);
  const parts: string[] = [];
  for (const [unit, size] of [['d', 1440], ['h', 60], ['m', 1]] as const) {
    const count = Math.floor(minutes / size);
    if (count > 0) parts.push(`${count}${unit}`);
    minutes -= count * size;
  }
  return parts.join('') || '0m';
}
