/** I messaggi italiani. */
import type { Messages } from './en';
import { board, booking, series } from './it/booking';
import { common, missing, problem, problems, refused, state, status } from './it/common';
import { design } from './it/design';
import { timelineWords as timeline } from '../timeline/words/it';
import { notices } from './it/notices';
import { approvalsPage, bookings, feeds, find, limits, me, resource, sitesPage, tokens } from './it/pages';
import { audit, branding, closures, file, members, people, projects, settings, tree, types } from './it/admin';
import { maintenance, policies } from './it/rules';
import { environments } from './it/environments';
import { health } from './it/health';
import { queue, queueAdmin, shares, submit } from './it/queue';
import { sessions, sessionsAdmin } from './it/sessions';
import { nav, palette, shell, signIn } from './it/shell';
import { charts, usage } from './it/usage';

export const it: Messages = {
  approvalsPage,
  audit,
  board,
  booking,
  bookings,
  branding,
  charts,
  closures,
  common,
  design,
  environments,
  feeds,
  file,
  find,
  health,
  limits,
  maintenance,
  me,
  members,
  missing,
  nav,
  notices,
  palette,
  people,
  policies,
  problem,
  problems,
  projects,
  queue,
  queueAdmin,
  refused,
  resource,
  series,
  sessions,
  sessionsAdmin,
  settings,
  shares,
  shell,
  signIn,
  sitesPage,
  state,
  status,
  submit,
  timeline,
  tokens,
  tree,
  types,
  usage,
};
