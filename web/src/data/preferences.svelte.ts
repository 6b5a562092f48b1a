/** What a person prefers in this browser: kept here, because it is about the screen and not about the person. */
import { untrack } from 'svelte';

export type Theme = 'auto' | 'light' | 'dark';
export type ZoneChoice = 'site' | 'mine';

interface Stored {
  theme: Theme;
  zone: ZoneChoice;
  locale: string | null;
  /** The site that was looked at last; `/` leads there. */
  site: string | null;
}

const KEY = 'berth.preferences';
const FIRST: Stored = { theme: 'auto', zone: 'site', locale: null, site: null };

function read(): Stored {
  try {
    return { ...FIRST, ...(JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Stored>) };
  } catch {
    // A browser may forbid storage, or hold what an older version wrote.
    return FIRST;
  }
}

class Preferences {
  #now = $state.raw<Stored>(read());

  get theme(): Theme {
    return this.#now.theme;
  }
  get zone(): ZoneChoice {
    return this.#now.zone;
  }
  get locale(): string | null {
    return this.#now.locale;
  }
  get site(): string | null {
    return this.#now.site;
  }

  set(change: Partial<Stored>): void {
    // Setting one preference in an effect must not make the effect depend on all of them.
    const next = { ...untrack(() => this.#now), ...change };
    this.#now = next;
    try {
      localStorage.setItem(KEY, JSON.stringify(next));
    } catch {
      // Then it holds until the page is left.
    }
  }
}

export const preferences = new Preferences();

/** Shows the chosen theme; `auto` follows the system. */
export function applyTheme(theme: Theme): void {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
