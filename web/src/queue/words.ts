/** What somebody asks the queue for, and why they wait for it, in words. */
import type { Messages } from '../i18n/en';
import type { Formats } from '../i18n/format';
import type { Locale } from '../i18n/i18n.svelte';
import { periodMs } from './amounts';
import type { Gpus, Outcome, Task, Waits, Wish } from './types';

const MODEL = /^gpu_model ?= ?(.+)$/;

/** The model that is wanted, if one is, and the other conditions. */
export function modelOf(gpus: Gpus): { readonly model: string; readonly others: readonly string[] } {
  const where = gpus.where ?? [];
  const named = where.find((one) => MODEL.test(one));
  return { model: named ? (MODEL.exec(named)?.[1] ?? '') : '', others: where.filter((one) => one !== named) };
}

export function gpuWords(gpus: Gpus, t: Messages, format: Formats): string {
  const { model, others } = modelOf(gpus);
  const base = gpus.share
    ? t.queue.gpuShare(format.percent(gpus.share / 1_000, 1), model)
    : gpus.slice
      ? t.queue.slices(gpus.count ?? 1, gpus.slice, model)
      : t.queue.gpus(gpus.count ?? 1, model);
  return others.length > 0 ? `${base} (${others.join(', ')})` : base;
}

/** "64 GiB". */
export function memoryWords(mib: number, format: Formats): string {
  if (mib < 1_024) return together(`${format.number(mib)} MiB`);
  return together(`${format.number(Math.round(mib / 102.4) / 10)} GiB`);
}

export function coresWords(milli: number, t: Messages, format: Formats): string {
  return t.queue.cores(milli / 1_000, format.number(milli / 1_000));
}

/** "1 GPU A100, 8 cores, 64 GiB". */
export function taskWords(task: Task, t: Messages, format: Formats): string {
  const parts = [coresWords(task.cores_milli, t, format), memoryWords(task.memory_mib, format)];
  return (task.gpus ? [gpuWords(task.gpus, t, format), ...parts] : parts).join(', ');
}

/** "4 × (1 GPU A100, 8 cores, 64 GiB), up to 8 h". */
export function wishWords(wish: Wish, t: Messages, format: Formats): string {
  const task = taskWords(wish.task, t, format);
  const tasks = wish.tasks ?? 1;
  const what = tasks > 1 ? `${format.number(tasks)} × (${task})` : task;
  return `${what}, ${t.queue.upTo(together(format.length(periodMs(wish.limit))))}`;
}

/** All ways that would do: the first is preferred. */
export function wishesWords(wishes: readonly Wish[], t: Messages, format: Formats): string {
  return wishes.map((wish) => wishWords(wish, t, format)).join(` ${t.queue.or} `);
}

export interface Said {
  readonly text: string;
  /** Set where only the server's English sentence is known. */
  readonly language?: 'en';
}

/** In English the server's own sentence, which knows more of the case; elsewhere ours, by the code. */
export function whyWords(waits: Waits, t: Messages, locale: Locale): Said {
  const known = (t.queue.why as Readonly<Record<string, string>>)[waits.code];
  if (locale !== 'en' && known) return { text: known };
  return { text: sentence(waits.words), ...(locale === 'en' ? {} : { language: 'en' as const }) };
}

export function remedyWords(waits: Waits, t: Messages, locale: Locale): Said | null {
  const known = (t.queue.remedy as Readonly<Record<string, string>>)[waits.code];
  if (!waits.remedy) return null;
  if (locale !== 'en' && known) return { text: known };
  return { text: sentence(waits.remedy), ...(locale === 'en' ? {} : { language: 'en' as const }) };
}

/** "completed", "failed with 137". */
export function outcomeWords(outcome: Outcome, t: Messages): string {
  return typeof outcome === 'string' ? t.queue.outcome[outcome] : t.queue.failedWith(outcome.failed.exit_code);
}

/** A number and its unit stay in one line. */
function together(text: string): string {
  return text.replaceAll(' ', '\u00a0');
}

/** With a capital at its beginning and a full stop at its end. */
export function sentence(words: string): string {
  const said = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?]$/.test(said) ? said : `${said}.`;
}
