/** The sites that the person may see, and the one that is looked at. */
import { api, call } from '../api/client';
import { all } from '../api/pages';
import { asFailure, type Failure } from '../api/problem';
import type { Site } from '../api/types';
import { session } from './session.svelte';

class Sites {
  list = $state.raw<readonly Site[]>([]);
  isLoaded = $state(false);
  failure = $state.raw<Failure | null>(null);
  /** Those that the person belongs to, or that a global admin looks after. */
  get mine(): readonly Site[] {
    return this.list.filter((site) => session.isMember(site.name));
  }

  /** Those whose timeline the person can look at. */
  get visible(): readonly Site[] {
    return this.list.filter((site) => site.you_see === 'everything' || site.you_see === 'free_busy');
  }

  named(name: string | undefined): Site | undefined {
    return this.list.find((site) => site.name === name);
  }

  async refresh(): Promise<void> {
    try {
      this.list = await all((query) => call(api.GET('/sites', { params: { query } })));
      this.failure = null;
      this.isLoaded = true;
    } catch (thrown) {
      this.failure = asFailure(thrown);
    }
  }

  clear(): void {
    this.list = [];
    this.isLoaded = false;
  }
}

export const sites = new Sites();
