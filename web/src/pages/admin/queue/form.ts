/** The queue's settings as a form holds them, and back. What the form cannot show is kept as it was. */
import { periodMs, writePeriod } from '../../../queue/amounts';
import { freshDraft, fromProfile, isAsProfile, wishOf, type Draft } from '../../../queue/draft';
import type { SessionActivity, SessionApp, SessionProfile } from '../../../api/types';
import type { Part, Profile, Settings } from '../../../queue/types';

export interface QuotaRow {
  whose: 'site' | 'project' | 'person';
  name: string;
  gpus: number | null;
  gpusGuaranteed: number | null;
  cores: number | null;
  coresGuaranteed: number | null;
  month: number | null;
  hours: string;
}

export interface LevelRow {
  name: string;
  number: number;
  projects: string;
}

export interface ProfileRow {
  name: string;
  title: string;
  draft: Draft;
  /** How sessions of it are run; null for a preset that is not for sessions. */
  session: SessionRow | null;
  before: Profile | null;
}

export interface SessionRow {
  app: string;
  environment: string;
  idleMs: number | null;
  /** Null where its GPUs are never lent. */
  lendAfterMs: number | null;
  projects: string;
}

export interface AppRow {
  name: string;
  title: string;
  /** The program and its arguments, one in each line. */
  command: string;
  serves: 'socket' | 'port';
  port: number;
  health: string;
  knowsItsBase: boolean;
  environment: string;
  activity: SessionActivity;
  /** One in each line: NAME=value. */
  variables: string;
}

export interface Form {
  halfLifeMs: number | null;
  graceS: number;
  checkpointS: number;
  runMinMs: number | null;
  limitMaxMs: number | null;
  waitingMax: number;
  lends: boolean;
  roles: Record<string, Part | ''>;
  weights: Record<string, number | null>;
  quotas: QuotaRow[];
  levels: LevelRow[];
  profiles: ProfileRow[];
  apps: AppRow[];
}

/** What comes with Berth, by name. */
export const CATALOGUE = ['jupyterlab', 'vscode', 'tensorboard', 'mlflow', 'desktop'] as const;

/** What the server takes where a preset says nothing. */
const IDLE_MS = 3_600_000;
const LEND_AFTER_MS = 900_000;

const thousandth = (milli: number | null | undefined) => (milli === null || milli === undefined ? null : milli / 1_000);

export function fromSettings(settings: Settings): Form {
  return {
    halfLifeMs: periodMs(settings.half_life),
    graceS: Math.round(periodMs(settings.grace) / 1_000),
    checkpointS: Math.round(periodMs(settings.checkpoint) / 1_000),
    runMinMs: periodMs(settings.run_min),
    limitMaxMs: periodMs(settings.limit_max),
    waitingMax: settings.waiting_max,
    lends: settings.lends,
    roles: { ...settings.roles },
    weights: { ...settings.shares },
    quotas: settings.quotas.map(({ project, person, amounts, hours }) => ({
      whose: project ? 'project' : person ? 'person' : 'site',
      name: project ?? person ?? '',
      gpus: thousandth(amounts.gpus_milli),
      gpusGuaranteed: thousandth(amounts.gpus_milli_guaranteed),
      cores: thousandth(amounts.cores_milli),
      coresGuaranteed: thousandth(amounts.cores_milli_guaranteed),
      month: amounts.gpu_hours_month ?? null,
      hours: hours ?? '',
    })),
    levels: Object.entries(settings.levels).map(([name, { number, projects }]) => ({ name, number, projects: (projects ?? []).join(', ') })),
    profiles: Object.entries(settings.profiles).map(([name, profile]) => ({ name, title: profile.title, draft: { ...freshDraft(), ...fromProfile(name, profile) }, session: profile.session ? sessionRow(profile.session) : null, before: profile })),
    // A site without any of its own says nothing of them.
    apps: Object.entries(settings.apps ?? {}).map(([name, app]) => appRow(name, app)),
  };
}

export function freshQuota(): QuotaRow {
  return { whose: 'project', name: '', gpus: null, gpusGuaranteed: null, cores: null, coresGuaranteed: null, month: null, hours: '' };
}

export function freshProfile(): ProfileRow {
  return { name: '', title: '', draft: freshDraft(), session: null, before: null };
}

export function freshSession(app: string): SessionRow {
  return { app, environment: '', idleMs: IDLE_MS, lendAfterMs: LEND_AFTER_MS, projects: '' };
}

export function freshApp(): AppRow {
  return { name: '', title: '', command: '', serves: 'socket', port: 8888, health: '', knowsItsBase: false, environment: '', activity: 'traffic', variables: '' };
}

function sessionRow({ app, environment, idle, lend_after, projects }: SessionProfile): SessionRow {
  const lendAfterMs = lend_after === undefined ? LEND_AFTER_MS : lend_after === null ? null : periodMs(lend_after);
  return { app, environment: environment ?? '', idleMs: idle ? periodMs(idle) : IDLE_MS, lendAfterMs, projects: (projects ?? []).join(', ') };
}

function appRow(name: string, { title, command, serves, health, knows_its_base, environment, activity, variables }: SessionApp): AppRow {
  return {
    name,
    title,
    command: command.join('\n'),
    serves: serves === 'socket' ? 'socket' : 'port',
    port: serves === 'socket' ? 8888 : serves.port,
    health: health ?? '',
    knowsItsBase: knows_its_base ?? false,
    environment: environment ?? '',
    activity: activity ?? 'traffic',
    variables: Object.entries(variables ?? {}).map(([variable, value]) => `${variable}=${value}`).join('\n'),
  };
}

export function toSettings(form: Form): Settings {
  return {
    half_life: writePeriod(form.halfLifeMs ?? 0),
    grace: writePeriod((form.graceS || 0) * 1_000),
    checkpoint: writePeriod((form.checkpointS || 0) * 1_000),
    run_min: writePeriod(form.runMinMs ?? 0),
    limit_max: writePeriod(form.limitMaxMs ?? 0),
    waiting_max: form.waitingMax,
    lends: form.lends,
    roles: Object.fromEntries(Object.entries(form.roles).filter((entry): entry is [string, Part] => entry[1] !== '')),
    shares: Object.fromEntries(Object.entries(form.weights).filter((entry): entry is [string, number] => typeof entry[1] === 'number')),
    quotas: form.quotas.map(({ whose, name, hours, ...row }) => ({
      ...(whose === 'site' ? {} : { [whose]: name.trim() }),
      amounts: {
        ...milli('gpus_milli', row.gpus),
        ...milli('gpus_milli_guaranteed', row.gpusGuaranteed),
        ...milli('cores_milli', row.cores),
        ...milli('cores_milli_guaranteed', row.coresGuaranteed),
        ...(typeof row.month === 'number' ? { gpu_hours_month: row.month } : {}),
      },
      ...(hours.trim() ? { hours: hours.trim() } : {}),
    })),
    levels: Object.fromEntries(form.levels.map(({ name, number, projects }) => [name.trim(), { number: number || 0, projects: names(projects) }])),
    profiles: Object.fromEntries(form.profiles.map((row) => [row.name.trim(), profileOf(row)])),
    apps: Object.fromEntries(form.apps.map((row) => [row.name.trim(), appOf(row)])),
  };
}

// A field that was emptied holds nothing, or an undefined that the browser put there.
function milli(field: string, amount: number | null): Record<string, number> {
  return typeof amount === 'number' ? { [field]: Math.round(amount * 1_000) } : {};
}

function names(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))];
}

function profileOf({ title, draft, session, before }: ProfileRow): Profile {
  const isSame = before !== null && isAsProfile(draft, before);
  return {
    title: title.trim(),
    class: draft.class,
    wishes: isSame ? before.wishes : [wishOf(draft), ...(before?.wishes.slice(1) ?? [])],
    ...(session ? { session: sessionOf(session) } : {}),
  };
}

function sessionOf({ app, environment, idleMs, lendAfterMs, projects }: SessionRow): SessionProfile {
  return {
    app: app.trim(),
    ...(environment.trim() ? { environment: environment.trim() } : {}),
    idle: writePeriod(idleMs ?? IDLE_MS),
    lend_after: lendAfterMs === null ? null : writePeriod(lendAfterMs),
    projects: names(projects),
  };
}

function appOf({ title, command, serves, port, health, knowsItsBase, environment, activity, variables }: AppRow): SessionApp {
  const set = lines(variables).flatMap((line) => {
    const [, name, value] = /^\s*([^=\s]+)\s*=(.*)$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, value ?? ''] as const];
  });
  return {
    title: title.trim(),
    command: lines(command),
    serves: serves === 'socket' ? 'socket' : { port },
    health: health.trim(),
    knows_its_base: knowsItsBase,
    ...(environment.trim() ? { environment: environment.trim() } : {}),
    activity,
    ...(set.length > 0 ? { variables: Object.fromEntries(set) } : {}),
  };
}

function lines(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}
