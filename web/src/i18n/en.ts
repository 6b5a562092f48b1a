/**
 * The English messages, which are the type of all others: a language that lacks one, or has one too many arguments, does not
 * compile. Plain texts are texts; what depends on something is a function of it.
 */
import { board, booking, series } from './en/booking';
import { common, missing, problem, problems, refused, state, status } from './en/common';
import { design } from './en/design';
import { timelineWords as timeline } from '../timeline/words/en';
import { notices } from './en/notices';
import { approvalsPage, bookings, feeds, find, limits, me, resource, sitesPage, tokens } from './en/pages';
import { audit, branding, closures, file, members, people, projects, settings, tree, types } from './en/admin';
import { maintenance, policies } from './en/rules';
import { environments } from './en/environments';
import { health } from './en/health';
import { queue, queueAdmin, shares, submit } from './en/queue';
import { sessions, sessionsAdmin } from './en/sessions';
import { nav, palette, shell, signIn } from './en/shell';
import { charts, usage } from './en/usage';

export const en = {
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

export type Messages = typeof en;
