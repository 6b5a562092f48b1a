/** The queue's settings as a form holds them, and back. What the form cannot show is kept as it was. */
import { periodMs, writePeriod } from '../../../queue/amounts';
import { freshDraft, fromProfile, isAsProfile, wishOf, type Draft } from '../../../queue/draft';
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
  before: Profile | null;
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
}

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
    profiles: Object.entries(settings.profiles).map(([name, profile]) => ({ name, title: profile.title, draft: { ...freshDraft(), ...fromProfile(name, profile) }, before: profile })),
  };
}

export function freshQuota(): QuotaRow {
  return { whose: 'project', name: '', gpus: null, gpusGuaranteed: null, cores: null, coresGuaranteed: null, month: null, hours: '' };
}

export function freshProfile(): ProfileRow {
  return { name: '', title: '', draft: freshDraft(), before: null };
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
  };
}

// A field that was emptied holds nothing, or an undefined that the browser put there.
function milli(field: string, amount: number | null): Record<string, number> {
  return typeof amount === 'number' ? { [field]: Math.round(amount * 1_000) } : {};
}

function names(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))];
}

function profileOf({ title, draft, before }: ProfileRow): Profile {
  const isSame = before !== null && isAsProfile(draft, before);
  return {
    title: title.trim(),
    class: draft.class,
    wishes: isSame ? before.wishes : [wishOf(draft), ...(before?.wishes.slice(1) ?? [])],
  };
}
