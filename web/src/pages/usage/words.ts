/** Use in words. */
import type { RefusalCount } from '../../api/types';
import type { Messages } from '../../i18n/en';
import { dateFormat } from '../../time/locale';
import { quarterOf, type Period } from './period';

/** "November 2026", "Q4 2026", "16–22 Nov 2026". */
export function periodName({ kind, span }: Period, zone: string, t: Messages, locale: string): string {
  if (kind === 'month') return dateFormat(locale, zone, { month: 'long', year: 'numeric' }).format(span.start);
  if (kind === 'quarter') {
    return t.usage.quarter(quarterOf(span.start, zone) + 1, dateFormat(locale, zone, { year: 'numeric' }).format(span.start));
  }
  return dateFormat(locale, zone, { day: 'numeric', month: 'short', year: 'numeric' }).formatRange(span.start, span.end - 1);
}

/** Why something was refused; what the server came to refuse after these pages were made goes by its code. */
export function refusalWords({ code, rule }: RefusalCount, t: Messages): string {
  if (rule) return `${t.usage.policyRule}: ${t.policies.rule[rule]}`;
  return (t.usage.refused as Readonly<Record<string, string>>)[code] ?? code;
}
