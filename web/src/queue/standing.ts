/** Projects with the people in them, as they stand in the queue; whoever has had least of their share is first. */
import type { Messages } from '../i18n/en';
import type { Formats } from '../i18n/format';
import type { Locale } from '../i18n/i18n.svelte';
import type { Share } from './types';
import type { Said } from './words';

export interface Standing {
  readonly project: Share;
  readonly people: readonly Share[];
}

export function standings(shares: readonly Share[]): Standing[] {
  const byShare = (a: Share, b: Share) => a.of_share - b.of_share;
  return shares
    .filter((one) => !one.person)
    .toSorted(byShare)
    .map((project) => ({ project, people: shares.filter((one) => one.person && one.project?.id === project.project?.id).toSorted(byShare) }));
}

const MODES = ['reserved', 'interactive', 'batch', 'ray'] as const;

/** The server's sentence in English; our own, made of the same numbers, elsewhere. */
export function shareWords(share: Share, t: Messages, format: Formats, locale: Locale): Said {
  if (locale === 'en') return { text: share.words };
  if (share.used === 0) return { text: t.shares.nothingUsed };
  const parts = MODES.filter((mode) => share.modes[mode] >= 0.005).map((mode) => `${t.shares.modes[mode]} (${format.percent(share.modes[mode])})`);
  return { text: t.shares.words(timesShare(share, format), format.list(parts)) };
}

/** "1.4". */
export function timesShare({ of_share }: Share, format: Formats): string {
  return of_share.toLocaleString(format.locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
}
