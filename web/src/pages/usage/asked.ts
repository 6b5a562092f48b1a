/** The period that the address bar names. */
import { router } from '../../routing/router.svelte';
import { periodOf, type Period } from './period';

/** Read inside a `$derived`, it follows the address. */
export function askedPeriod(zone: string): Period {
  const asked = { kind: router.query('period'), at: router.query('at'), from: router.query('from'), to: router.query('to') };
  return periodOf(asked, Date.now(), zone);
}
