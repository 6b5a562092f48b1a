/** I messaggi italiani. */
import type { Messages } from './en';
import { board, booking } from './it/booking';
import { common, missing, problem, problems, refused, state, status } from './it/common';
import { design } from './it/design';
import { timelineWords as timeline } from '../timeline/words/it';
import { approvalsPage, bookings, feeds, find, limits, me, notices, resource, sitesPage, tokens } from './it/pages';
import { members } from './it/admin';
import { nav, palette, shell, signIn } from './it/shell';

export const it: Messages = {
  approvalsPage,
  board,
  booking,
  bookings,
  common,
  design,
  feeds,
  find,
  limits,
  me,
  members,
  missing,
  nav,
  notices,
  palette,
  problem,
  problems,
  refused,
  resource,
  shell,
  signIn,
  sitesPage,
  state,
  status,
  timeline,
  tokens,
};
