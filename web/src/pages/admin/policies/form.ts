/** A policy as it stands in a form: texts, where an empty one asks nothing. */
import type { Approver, Outcome, Policy, Role } from '../../../api/types';
import { parseLength } from '../../../i18n/length';

export const LENGTH_RULES = [
  'notice',
  'horizon',
  'length_min',
  'length_max',
  'length_step',
  'start_step',
  'person_hours_per_week',
  'project_hours_per_week',
  'gap',
  'buffer_before',
  'buffer_after',
  'check_in',
] as const;
export type LengthRule = (typeof LENGTH_RULES)[number];

export const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
export type Day = (typeof DAYS)[number];

export interface PolicyForm {
  lengths: Record<LengthRule, string>;
  activeBookings: number | null;
  closedOnHolidays: '' | 'true' | 'false';
  roles: Role[];
  /** Names, with commas. */
  projects: string;
  hasHours: boolean;
  hours: Record<Day, string>;
  asksApproval: boolean;
  longerThan: string;
  approvers: string;
  deputies: string;
  timeOut: string;
  outcome: Outcome;
}

export function fromPolicy(policy?: Policy | null): PolicyForm {
  const approval = policy?.approval;
  return {
    lengths: Object.fromEntries(LENGTH_RULES.map((rule) => [rule, policy?.[rule] ?? ''])) as Record<LengthRule, string>,
    activeBookings: policy?.active_bookings ?? null,
    closedOnHolidays: policy?.closed_on_holidays === true ? 'true' : policy?.closed_on_holidays === false ? 'false' : '',
    roles: [...(policy?.who_may_book?.roles ?? [])],
    projects: (policy?.who_may_book?.projects ?? []).join(', '),
    hasHours: Boolean(policy?.opening_hours),
    hours: Object.fromEntries(DAYS.map((day) => [day, (policy?.opening_hours?.[day] ?? []).join(', ')])) as Record<Day, string>,
    asksApproval: Boolean(approval),
    longerThan: approval?.longer_than ?? '',
    approvers: (approval?.approvers ?? []).map(writeApprover).join(', '),
    deputies: (approval?.deputies ?? []).map(writeApprover).join(', '),
    timeOut: approval?.time_out?.after ?? '',
    outcome: approval?.time_out?.outcome ?? 'reject',
  };
}

/** Only the rules that ask something. */
export function toPolicy(form: PolicyForm): Policy {
  const lengths = Object.entries(form.lengths).filter(([, text]) => text.trim() !== '').map(([rule, text]) => [rule, compact(text)]);
  const projects = split(form.projects);
  return {
    ...Object.fromEntries(lengths),
    ...(form.activeBookings === null ? {} : { active_bookings: form.activeBookings }),
    ...(form.closedOnHolidays === '' ? {} : { closed_on_holidays: form.closedOnHolidays === 'true' }),
    ...(form.roles.length > 0 || projects.length > 0
      ? { who_may_book: { ...(form.roles.length > 0 ? { roles: form.roles } : {}), ...(projects.length > 0 ? { projects } : {}) } }
      : {}),
    ...(form.hasHours ? { opening_hours: Object.fromEntries(DAYS.map((day) => [day, split(form.hours[day])])) } : {}),
    ...(form.asksApproval ? { approval: approvalOf(form) } : {}),
  } as Policy;
}

/** The fields that hold no length, or nobody who can decide, although they should. */
export function wrongFields(form: PolicyForm): Set<string> {
  const all = { ...form.lengths, longerThan: form.longerThan, timeOut: form.timeOut };
  const lengths = Object.entries(all).filter(([, text]) => text.trim() !== '' && parseLength(text) === null);
  const deciders = Object.entries({ approvers: form.approvers, deputies: form.deputies }).filter(([, text]) => split(text).some((one) => readApprover(one) === null));
  return new Set([...lengths, ...deciders].map(([name]) => name));
}

function approvalOf(form: PolicyForm): Policy['approval'] {
  const approvers = readApprovers(form.approvers);
  const deputies = readApprovers(form.deputies);
  return {
    ...(form.longerThan.trim() ? { longer_than: compact(form.longerThan) } : {}),
    ...(approvers.length > 0 ? { approvers } : {}),
    ...(deputies.length > 0 ? { deputies } : {}),
    ...(form.timeOut.trim() ? { time_out: { after: compact(form.timeOut), outcome: form.outcome } } : {}),
  };
}

export function writeApprover(approver: Approver): string {
  if (approver === 'site_admins') return 'site_admins';
  return 'project' in approver ? `project:${approver.project}` : `person:${approver.person}`;
}

function readApprovers(text: string): Approver[] {
  return split(text).map(readApprover).filter((one) => one !== null);
}

function readApprover(text: string): Approver | null {
  if (text === 'site_admins') return text;
  const [kind, name] = text.split(':').map((part) => part.trim());
  if (!name) return null;
  if (kind === 'project') return { project: name };
  return kind === 'person' ? { person: name } : null;
}

const split = (text: string) => text.split(',').map((part) => part.trim()).filter(Boolean);
const compact = (text: string) => text.toLowerCase().replace(/\s+/g, '');
