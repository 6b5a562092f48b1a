/**
 * A failure in words. The server explains itself in English; in another language the title and what to do come from here, by
 * the problem's code, and the server's sentence about this very case stays as it is, marked as English.
 */
import type { Failure } from '../api/problem';
import type { Messages } from './en';
import type { Locale } from './i18n.svelte';

export interface Words {
  readonly title: string;
  readonly detail?: string;
  readonly detailLanguage?: string;
  readonly hint?: string;
  readonly hintLanguage?: string;
}

interface Explained {
  readonly title: string;
  readonly hint: string;
}

export function explain(failure: Failure, t: Messages, locale: Locale): Words {
  const known = (t.problems as Readonly<Record<string, Explained>>)[failure.code];
  const { problem } = failure;
  if (!problem) return known ?? t.problems['client.unreadable'];
  if (locale === 'en') return { title: problem.title, detail: problem.detail, hint: problem.hint };
  return {
    title: known?.title ?? problem.title,
    detail: problem.detail,
    detailLanguage: 'en',
    hint: known?.hint ?? problem.hint,
    ...(known ? {} : { hintLanguage: 'en' }),
  };
}
