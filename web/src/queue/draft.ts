/** A submission as the form holds it, as the API takes it, and as one would type it. */
import { writeLength } from '../i18n/length';
import { parseMemory, periodMs, writeMemory, writePeriod } from './amounts';
import type { Class, Gpus, Near, NewWorkload, Profile, Wish, Workload } from './types';
import { modelOf } from './words';

export type GpuKind = 'none' | 'whole' | 'share' | 'slice';
export const ONLY_IF = ['completed', 'failed', 'over', 'begun'] as const;
export type OnlyIf = (typeof ONLY_IF)[number];

export interface Alternative {
  gpus: number;
  limitMs: number | null;
}

export interface SeatsRow {
  resource: string;
  amount: number;
}

export interface Draft {
  title: string;
  project: string;
  profile: string;
  gpuKind: GpuKind;
  gpuCount: number;
  model: string;
  slice: string;
  sharePercent: number;
  cores: number;
  memory: string;
  tasks: number;
  limitMs: number | null;
  class: Class;
  level: string;
  array: string;
  notBefore: number | null;
  deadline: number | null;
  /** Numbers of other workloads. */
  after: string;
  onlyIf: OnlyIf;
  requeue: boolean;
  near: Near;
  held: boolean;
  /** Other ways that would do: so many GPUs for so long. */
  or: Alternative[];
  /** Of licences and other counted things. */
  seats: SeatsRow[];
  /** The id of a reservation of one's own. */
  inside: string;
  command: string;
  /** In place of a command. */
  script: string;
  image: string;
  environment: string;
}

export function freshDraft(): Draft {
  return {
    title: '', project: '', profile: '', gpuKind: 'none', gpuCount: 1, model: '', slice: '', sharePercent: 50,
    cores: 4, memory: '16GiB', tasks: 1, limitMs: 4 * 3_600_000, class: 'guaranteed', level: '', array: '', notBefore: null, deadline: null,
    after: '', onlyIf: 'completed', requeue: true, near: 'anywhere', held: false, or: [], seats: [], inside: '', command: '', script: '', image: '', environment: '',
  };
}

/** What a preset fills in; the rest of the form stays as it is. */
export function fromProfile(name: string, profile: Profile): Partial<Draft> {
  const wish = profile.wishes[0];
  if (!wish) return { profile: name };
  const gpus = wish.task.gpus;
  const kind: GpuKind = !gpus ? 'none' : gpus.slice ? 'slice' : gpus.share ? 'share' : 'whole';
  return {
    profile: name,
    gpuKind: kind,
    gpuCount: gpus?.count ?? 1,
    model: gpus ? modelOf(gpus).model : '',
    slice: gpus?.slice ?? '',
    sharePercent: gpus?.share ? gpus.share / 10 : 50,
    cores: wish.task.cores_milli / 1_000,
    memory: writeMemory(wish.task.memory_mib),
    tasks: wish.tasks ?? 1,
    limitMs: periodMs(wish.limit),
    near: wish.near ?? 'anywhere',
    class: profile.class ?? 'guaranteed',
  };
}

/** The same again: what another workload asked for, under its title. Moments and order were its own. */
export function fromWorkload(workload: Workload): Partial<Draft> {
  const { array, program } = workload;
  return {
    ...fromProfile('', { title: workload.title, class: workload.class, wishes: workload.wishes }),
    title: workload.title,
    project: workload.project?.name ?? '',
    level: workload.level ?? '',
    array: array ? `${array.tasks}${array.at_once ? `%${array.at_once}` : ''}` : '',
    requeue: workload.requeue,
    or: workload.wishes.slice(1).map(({ task, limit }) => ({ gpus: task.gpus?.count ?? 1, limitMs: periodMs(limit) })),
    seats: (workload.seats ?? []).map(({ resource, amount }) => ({ resource: resource.name, amount })),
    script: program?.script ?? '',
    command: (program?.command ?? []).map(quote).join(' '),
    image: program?.image ?? '',
    environment: Object.entries(program?.environment ?? {}).map(([name, value]) => `${name}=${value}`).join('\n'),
  };
}

/** Whether the form still asks for just what the preset does, so that the preset's name says it all. */
export function isAsProfile(draft: Draft, profile: Profile | undefined): boolean {
  if (!profile || draft.or.length > 0) return false;
  return Object.entries(fromProfile(draft.profile, profile)).every(([key, value]) => draft[key as keyof Draft] === value);
}

export function wishOf(draft: Draft): Wish {
  const gpus = gpusOf(draft);
  return {
    tasks: whole(draft.tasks),
    task: { cores_milli: Math.round(draft.cores * 1_000), memory_mib: parseMemory(draft.memory) ?? 0, ...(gpus ? { gpus } : {}) },
    limit: writePeriod(draft.limitMs ?? 0),
    ...(draft.near === 'anywhere' ? {} : { near: draft.near }),
  };
}

/** All ways in which it could be served, the first being preferred. Another way is as many whole GPUs for another time. */
export function wishesOf(draft: Draft): Wish[] {
  const first = wishOf(draft);
  if (draft.gpuKind !== 'whole') return [first];
  const others = draft.or.map(({ gpus, limitMs }) => ({
    ...first,
    task: { ...first.task, gpus: { ...first.task.gpus, count: whole(gpus) } },
    limit: writePeriod(limitMs ?? 0),
  }));
  return [first, ...others];
}

function gpusOf(draft: Draft): Gpus | null {
  const where = draft.model ? { where: [`gpu_model=${draft.model}`] } : {};
  switch (draft.gpuKind) {
    case 'none':
      return null;
    case 'whole':
      return { count: whole(draft.gpuCount), ...where };
    case 'share':
      return { share: Math.round(draft.sharePercent * 10), ...where };
    case 'slice':
      return { slice: draft.slice, count: whole(draft.gpuCount) };
  }
}

// A field that was emptied holds null, and then the API says what is missing.
function whole(value: number): number {
  return Math.round(value || 0);
}

/** `after` with the ids of the workloads whose numbers were written. */
export function toNewWorkload(draft: Draft, profile: Profile | undefined, after: readonly string[]): NewWorkload {
  const array = /^([^%]+?)\s*(?:%\s*(\d+))?$/.exec(draft.array.trim());
  const environment = readEnvironment(draft.environment);
  const seats = draft.seats.filter(({ resource }) => resource).map(({ resource, amount }) => ({ resource, amount: whole(amount) }));
  const program = {
    ...(draft.script.trim() ? { script: draft.script } : draft.command.trim() ? { command: splitCommand(draft.command) } : {}),
    ...(draft.image.trim() ? { image: draft.image.trim() } : {}),
    ...(Object.keys(environment).length > 0 ? { environment } : {}),
  };
  return {
    title: draft.title.trim(),
    ...(draft.project ? { project: draft.project } : {}),
    ...(isAsProfile(draft, profile) ? { profile: draft.profile } : { wishes: wishesOf(draft), class: draft.class }),
    ...(draft.level ? { level: draft.level } : {}),
    ...(array?.[1] ? { array: { tasks: array[1].replace(/\s/g, ''), ...(array[2] ? { at_once: Number(array[2]) } : {}) } } : {}),
    ...(draft.notBefore === null ? {} : { not_before: new Date(draft.notBefore).toISOString() }),
    ...(draft.deadline === null ? {} : { deadline: new Date(draft.deadline).toISOString() }),
    ...(after.length > 0 ? { after: after.map((workload) => ({ workload, only_if: draft.onlyIf })) } : {}),
    ...(seats.length > 0 ? { seats } : {}),
    ...(draft.inside ? { inside: draft.inside } : {}),
    ...(draft.requeue ? {} : { requeue: false }),
    ...(draft.held ? { held: true } : {}),
    ...(Object.keys(program).length > 0 ? { program } : {}),
  } as NewWorkload;
}

/** The numbers in `812, 813`. */
export function afterNumbers(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean).map((part) => part.replace(/^#/, ''));
}

/** `NAME=value` in lines. */
export function readEnvironment(text: string): Record<string, string> {
  const pairs = text.split('\n').map((line) => line.trim()).filter((line) => line.includes('='));
  return Object.fromEntries(pairs.map((line) => [line.slice(0, line.indexOf('=')).trim(), line.slice(line.indexOf('=') + 1)]));
}

/** A command line as its words: quotes hold words together, as in a shell. */
export function splitCommand(line: string): string[] {
  const words = line.match(/(?:[^\s"']+|"(?:\\.|[^"\\])*"|'[^']*')+/g) ?? [];
  return words.map((word) => word.replace(/"((?:\\.|[^"\\])*)"|'([^']*)'/g, (_, double?: string, single?: string) => double?.replace(/\\(.)/g, '$1') ?? single ?? ''));
}

export type Unsaid = 'script' | 'near' | 'requeue' | 'image' | 'environment' | 'onlyIf';

/** What to type for the same, and what of it can only be said here or over the API. */
export function commandOf(draft: Draft, site: string, profile: Profile | undefined): { readonly text: string; readonly unsaid: readonly Unsaid[] } {
  const words = ['berth', 'submit', '--site', quote(site), '--title', quote(draft.title.trim() || '…')];
  const say = (flag: string, value: string | number) => words.push(flag, quote(String(value)));
  if (draft.project) say('--project', draft.project);
  const asProfile = isAsProfile(draft, profile);
  if (asProfile) say('--profile', draft.profile);
  else {
    if (draft.gpuKind === 'share') say('--share', Math.round(draft.sharePercent * 10));
    else if (draft.gpuKind === 'whole') say('--gpus', draft.gpuCount);
    if (draft.gpuKind === 'slice') say('--slice', draft.slice);
    else if (draft.gpuKind !== 'none' && draft.model) say('--gpu-model', draft.model);
    say('--cores', draft.cores || 0);
    say('--memory', writeMemory(parseMemory(draft.memory) ?? 0));
    if (draft.tasks > 1) say('--tasks', draft.tasks);
    if (draft.limitMs) say('--time', writeLength(draft.limitMs));
    if (draft.gpuKind === 'whole') for (const { gpus, limitMs } of draft.or) say('--or', `${gpus}:${writeLength(limitMs ?? 0)}`);
    if (draft.class === 'opportunistic') say('--class', draft.class);
  }
  if (draft.array.trim()) say('--array', draft.array.replace(/\s/g, ''));
  for (const job of afterNumbers(draft.after)) say('--after', job);
  if (draft.notBefore !== null) say('--not-before', new Date(draft.notBefore).toISOString());
  if (draft.deadline !== null) say('--deadline', new Date(draft.deadline).toISOString());
  if (draft.level) say('--level', draft.level);
  for (const { resource, amount } of draft.seats) if (resource) say('--seats', `${resource}:${amount}`);
  if (draft.inside) say('--inside', draft.inside);
  if (draft.held) words.push('--hold');
  if (draft.command.trim() && !draft.script.trim()) words.push('--', ...splitCommand(draft.command).map(quote));
  const unsaid: Unsaid[] = [];
  if (draft.script.trim()) unsaid.push('script');
  if (draft.near !== 'anywhere' && !asProfile) unsaid.push('near');
  if (!draft.requeue) unsaid.push('requeue');
  if (draft.image.trim()) unsaid.push('image');
  if (draft.environment.trim()) unsaid.push('environment');
  if (draft.after.trim() && draft.onlyIf !== 'completed') unsaid.push('onlyIf');
  return { text: words.join(' '), unsaid };
}

function quote(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}
