/**
 * The limits of policies that a drag can run into, judged without asking the server: a hint while the pointer moves. The
 * server judges all rules when the booking is asked for.
 */
import type { Policy, PolicyVersion, Role } from '../api/types';
import { parseLength } from '../i18n/length';
import { lengthOf, type Span } from '../time/span';

export interface Limits {
  readonly longest: number | null;
  readonly shortest: number | null;
  readonly notice: number | null;
  readonly horizon: number | null;
  readonly startStep: number | null;
}

export type Breach = { readonly kind: 'longest' | 'shortest' | 'notice' | 'horizon'; readonly limit: number };

type LimitRule = 'length_max' | 'length_min' | 'notice' | 'horizon' | 'start_step';

/** The limits that hold for bookings of a type by a role: the tightest of each; the defaults only where the site is silent. */
export function limitsFor(policies: readonly PolicyVersion[], type: string, role: Role | null): Limits {
  const scoped = policies.flatMap(({ policy, scope }) => (policy ? [{ policy, scope }] : []));
  const own = scoped.filter(({ scope }) => typeof scope === 'object' && concerns(scope.site, type, role));
  const ceilings = scoped.filter(({ scope }) => scope === 'ceilings');
  const defaults = scoped.filter(({ scope }) => scope === 'defaults');

  function tightest(rule: LimitRule, choose: (...values: number[]) => number): number | null {
    const values = (list: readonly { policy: Policy }[]) =>
      list.map(({ policy }) => policy[rule]).flatMap((value) => (value ? [parseLength(value) ?? []].flat() : []));
    const site = values(own);
    const all = [...values(ceilings), ...(site.length > 0 ? site : values(defaults))];
    return all.length > 0 ? choose(...all) : null;
  }

  return {
    longest: tightest('length_max', Math.min),
    shortest: tightest('length_min', Math.max),
    notice: tightest('notice', Math.max),
    horizon: tightest('horizon', Math.min),
    startStep: tightest('start_step', Math.max),
  };
}

// A policy for a project speaks of bookings that name one, and a drag names none.
function concerns(part: { type: string | null; role: Role | null; project: string | null }, type: string, role: Role | null): boolean {
  return !part.project && (!part.type || part.type === type) && (!part.role || part.role === role);
}

export function breachOf(limits: Limits, span: Span, now: number): Breach | null {
  const length = lengthOf(span);
  if (limits.longest !== null && length > limits.longest) return { kind: 'longest', limit: limits.longest };
  if (limits.shortest !== null && length < limits.shortest) return { kind: 'shortest', limit: limits.shortest };
  if (limits.notice !== null && span.start < now + limits.notice) return { kind: 'notice', limit: limits.notice };
  if (limits.horizon !== null && span.start > now + limits.horizon) return { kind: 'horizon', limit: limits.horizon };
  return null;
}
