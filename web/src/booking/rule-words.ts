/** A rule of RFC 5545 in words, as far as the app makes them; what it does not know is shown as it is. */
import type { Messages } from '../i18n/en';
import type { Formats } from '../i18n/format';

const DAYS = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'];

export function ruleWords(rule: string, t: Messages, format: Formats): string {
  const parts = new Map(rule.split(';').map((part) => part.split('=') as [string, string]));
  const every = { DAILY: 'day', WEEKLY: 'week', MONTHLY: 'month' }[parts.get('FREQ') ?? ''] as 'day' | 'week' | 'month' | undefined;
  const days = (parts.get('BYDAY') ?? '').split(',').filter(Boolean).map((day) => DAYS.indexOf(day) + 1);
  if (!every || days.includes(0) || parts.has('BYMONTHDAY')) return rule;
  const said = [t.series.every(Number(parts.get('INTERVAL') ?? 1), every)];
  if (days.length > 0) said.push(format.list(days.map((day) => format.weekday(day, 'long'))));
  const until = /^(\d{4})(\d{2})(\d{2})/.exec(parts.get('UNTIL') ?? '');
  if (until) said.push(t.series.until(format.date(`${until[1]}-${until[2]}-${until[3]}T12:00:00Z`)));
  else if (parts.has('COUNT')) said.push(t.series.times(Number(parts.get('COUNT'))));
  return said.join(', ');
}
