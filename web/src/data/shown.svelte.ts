/** How times are shown now: in which language, on whose clock, and what the clock says. */
import { Formats } from '../i18n/format';
import { i18n } from '../i18n/i18n.svelte';
import { preferences } from './preferences.svelte';
import { session } from './session.svelte';
import { sites } from './sites.svelte';

const TICK_MS = 15_000;

class Shown {
  /** Now, to a quarter of a minute; enough for a line on a timeline and for "in 5 minutes". */
  now = $state(Date.now());
  /** The name of the site that the page is about, if it is about one. */
  siteName = $state<string | undefined>();

  myZone = $derived(session.person?.time_zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone);
  siteZone = $derived(sites.named(this.siteName)?.time_zone);
  zone = $derived(preferences.zone === 'site' ? (this.siteZone ?? this.myZone) : this.myZone);
  format = $derived(new Formats(i18n.intl, this.zone, i18n.t.timeline.units));

  constructor() {
    setInterval(() => (this.now = Date.now()), TICK_MS);
  }
}

export const shown = new Shown();
