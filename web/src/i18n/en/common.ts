import type { LocalCode } from '../../api/problem';
import type { State, Status } from '../../api/types';

export const common = {
  add: 'Add',
  any: 'Any',
  apply: 'Apply',
  back: 'Back',
  by: (who: string) => `by ${who}`,
  cancel: 'Cancel',
  change: 'Change',
  clear: 'Clear',
  close: 'Close',
  copied: 'Copied',
  copy: 'Copy',
  day: 'Day',
  done: 'Done',
  edit: 'Edit',
  end: 'End',
  filter: 'Filter',
  length: 'Length',
  lengthWrong: 'Write a length such as 90m, 2h30m or 3d.',
  nothingCalled: (name: string) => `Nothing is called “${name}” here.`,
  loading: 'Loading…',
  loadMore: 'Show more',
  name: 'Name',
  no: 'No',
  none: 'None',
  nothingFound: 'Nothing matches.',
  print: 'Print',
  project: 'Project',
  readMore: 'Read more',
  readMoreOn: (what: string) => `Read more: ${what}`,
  reason: 'Reason',
  reasonHint: 'It is kept in the history, and those concerned read it.',
  refresh: 'Refresh',
  resource: 'Resource',
  resources: 'Resources',
  role: 'Role',
  save: 'Save',
  saved: 'Saved.',
  search: 'Search',
  shownOnce: 'It is shown this once. Keep it where others do not read it.',
  since: 'Since',
  start: 'Start',
  state: 'State',
  status: 'Status',
  clockWrong: 'Write a time such as 9:30 or 14:00.',
  time: 'Time',
  timeZone: 'Time zone',
  title: 'Title',
  tryAgain: 'Try again',
  type: 'Type',
  undo: 'Undo',
  undone: 'Undone.',
  version: (number: number) => `version ${number}`,
  week: 'Week',
  when: 'When',
  yes: 'Yes',
  you: 'you',
};

export const status: Record<Status, string> = {
  ACTIVE: 'Active',
  MAINTENANCE: 'Maintenance',
  UNAVAILABLE: 'Unavailable',
};

export const state: Record<State, string> = {
  waiting: 'Waiting for room',
  held: 'Held',
  pending_approval: 'Needs approval',
  confirmed: 'Booked',
  starting: 'Starting',
  active: 'Running',
  ending: 'Ending',
  done: 'Over',
  cancelled: 'Cancelled',
  rejected: 'Turned down',
  failed: 'Failed',
};

export const problem = {
  explained: 'What this means',
  requestId: 'Request',
  stale: 'Somebody else changed this in the meantime',
  staleWhy: 'Nothing of yours was saved over it. Below is how it is now; make your change again if it is still right.',
};

export const refused = {
  title: 'You may not see this page',
  why: 'It is for the administrators of the site. Ask one of them to do it, or to make you one.',
  global: 'It is for global administrators, who look after all sites.',
};

export const missing = {
  title: 'Nothing is here',
  why: 'It does not exist, was removed, or you may not see it. If you were sent this address, ask for access to its site.',
  home: 'Go to the timeline',
};

interface Explained {
  readonly title: string;
  readonly hint: string;
}

/** The server explains its own problems in English; here stand only those that it cannot know of. */
export const problems: Record<LocalCode, Explained> & Readonly<Record<string, Explained>> = {
  'client.offline': {
    title: 'Berth cannot be reached',
    hint: 'Nothing was lost: what you see is as it last was. Look at your network; this page tries again by itself.',
  },
  'client.unreadable': {
    title: 'The answer could not be read',
    hint: 'Something between you and Berth answered in its stead. Try again; if it stays, tell whoever runs it.',
  },
};
