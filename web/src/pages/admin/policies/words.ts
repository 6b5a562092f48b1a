/** Policies in words. */
import type { PolicyScope, PolicyVersion } from '../../../api/types';
import type { Messages } from '../../../i18n/en';
import { parseLength } from '../../../i18n/length';
import { formatLength } from '../../../time/format';

export function scopeWords(scope: PolicyScope, t: Messages): string {
  if (scope === 'ceilings') return t.policies.ceilings;
  if (scope === 'defaults') return t.policies.defaults;
  const { type, role, project } = scope.site;
  const parts = [
    type ? t.policies.ofType(type) : '',
    role ? t.policies.ofRole(t.me.roles[role]) : '',
    project ? t.policies.ofProject(project) : '',
  ].filter(Boolean);
  return parts.length > 0 ? parts.join(', ') : t.policies.whole;
}

/** The rules that ask something, with their values as a person reads them. */
export function ruleLines(version: PolicyVersion, t: Messages): [string, string][] {
  return Object.entries(version.policy ?? {})
    .filter(([, value]) => value !== null)
    .map(([rule, value]) => [t.policies.rule[rule as keyof typeof t.policies.rule], valueWords(value, t)]);
}

function valueWords(value: unknown, t: Messages): string {
  if (typeof value === 'boolean') return value ? t.common.yes : t.common.no;
  if (Array.isArray(value)) return value.map((one) => valueWords(one, t)).join(', ');
  const length = typeof value === 'string' ? parseLength(value) : null;
  if (length !== null) return formatLength(length, t.timeline.units);
  if (typeof value !== 'object' || value === null) return String(value);
  return Object.entries(value)
    .filter(([, inner]) => inner !== null && !(Array.isArray(inner) && inner.length === 0))
    .map(([key, inner]) => `${key} ${valueWords(inner, t)}`)
    .join('; ');
}

export function sameScope(a: PolicyScope, b: PolicyScope): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
