import { expect, test } from 'vitest';
import type { Policy } from '../../../api/types';
import { fromPolicy, toPolicy, wrongFields } from './form';

const policy = {
  length_max: '12h',
  active_bookings: 3,
  closed_on_holidays: false,
  who_may_book: { roles: ['member'], projects: ['vision', 'leads'] },
  opening_hours: { mon: ['08:00-12:00', '13:00-18:00'], tue: [], wed: [], thu: [], fri: [], sat: [], sun: [] },
  approval: { longer_than: '4h', approvers: [{ project: 'leads' }, 'site_admins'], deputies: [{ person: 'ada' }], time_out: { after: '24h', outcome: 'reject' } },
} as unknown as Policy;

test('a policy that is opened and saved is the same', () => {
  expect(toPolicy(fromPolicy(policy))).toEqual(policy);
});

test('an empty form asks nothing', () => {
  expect(toPolicy(fromPolicy())).toEqual({});
});

test('what is no length is found', () => {
  const form = fromPolicy();
  form.lengths.notice = 'soon';
  form.timeOut = '1 d';
  expect(wrongFields(form)).toEqual(new Set(['notice']));
});

test('who cannot decide is found, and never becomes somebody else', () => {
  const form = fromPolicy();
  form.asksApproval = true;
  form.approvers = 'site_admins, person:ada';
  form.deputies = 'ada';
  expect(wrongFields(form)).toEqual(new Set(['deputies']));
  expect(toPolicy(form).approval).toEqual({ approvers: ['site_admins', { person: 'ada' }] });
});
