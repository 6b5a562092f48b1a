/** Amounts as the queue counts them: thousandths of cores and GPUs, MiB of memory, periods to the second, numbers of tasks. */

/** `PT1H30M` as milliseconds; 0 where it is no period. */
export function periodMs(period: string): number {
  const found = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/.exec(period);
  if (!found) return 0;
  const [days, hours, minutes, seconds] = found.slice(1).map((part) => Number(part ?? 0)) as [number, number, number, number];
  return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000;
}

/** The other way, to the second. */
export function writePeriod(milliseconds: number): string {
  const seconds = Math.max(1, Math.round(milliseconds / 1_000));
  const parts: [number, string][] = [[Math.floor(seconds / 3_600), 'H'], [Math.floor((seconds % 3_600) / 60), 'M'], [seconds % 60, 'S']];
  return `PT${parts.map(([count, unit]) => (count > 0 ? `${count}${unit}` : '')).join('')}`;
}

/** How many numbers `0-39` or `1,3,10-20:2` names. */
export function taskCount(tasks: string): number {
  if (tasks === '') return 0;
  return tasks.split(',').reduce((sum, part) => {
    const [, first = '0', last = first, step = '1'] = /^(\d+)(?:-(\d+))?(?::(\d+))?$/.exec(part) ?? [];
    return sum + Math.floor((Number(last) - Number(first)) / Math.max(1, Number(step))) + 1;
  }, 0);
}

/** `64GiB`, `512 MiB`, `1.5T`: as MiB; null where it is no amount of memory. A bare number is GiB, as most people mean it. */
export function parseMemory(text: string): number | null {
  const found = /^(\d+(?:[.,]\d+)?)\s*([mgt])?(?:i?b)?$/i.exec(text.trim());
  if (!found) return null;
  const unit = { m: 1, g: 1_024, t: 1_024 * 1_024 }[(found[2] ?? 'g').toLowerCase()] ?? 1_024;
  const mib = Math.round(Number((found[1] ?? '').replace(',', '.')) * unit);
  return mib > 0 ? mib : null;
}

/** As `parseMemory` and the command line read it. */
export function writeMemory(mib: number): string {
  return mib % 1_024 === 0 ? `${mib / 1_024}GiB` : `${mib}MiB`;
}
