/**
 * What a site has: its types and its tree of resources, read once and shared by all pages that look at the site.
 */
import { api, call } from '../api/client';
import { all } from '../api/pages';
import { asFailure, type Failure } from '../api/problem';
import type { Resource, ResourceType } from '../api/types';
import { isOf, live } from '../live/stream.svelte';

export class Catalogue {
  resources = $state.raw<readonly Resource[]>([]);
  types = $state.raw<readonly ResourceType[]>([]);
  isLoaded = $state(false);
  failure = $state.raw<Failure | undefined>();

  byId = $derived(new Map(this.resources.map((resource) => [resource.id, resource])));
  byName = $derived(new Map(this.resources.map((resource) => [resource.name, resource])));
  typeByName = $derived(new Map(this.types.map((type) => [type.name, type])));
  children = $derived(grouped(this.resources));

  constructor(readonly site: string) {}

  async refresh(): Promise<void> {
    const path = { site: this.site };
    try {
      [this.resources, this.types] = await Promise.all([
        all((query) => call(api.GET('/sites/{site}/resources', { params: { path, query } }))),
        all((query) => call(api.GET('/sites/{site}/types', { params: { path, query } }))),
      ]);
      this.failure = undefined;
      this.isLoaded = true;
    } catch (thrown) {
      this.failure = asFailure(thrown);
    }
  }

  /** The resource and all that is above it, from the root down. */
  pathTo(resource: Resource): Resource[] {
    const parent = resource.parent && this.byId.get(resource.parent.id);
    return parent ? [...this.pathTo(parent), resource] : [resource];
  }

  /** All that is below it, not itself. */
  below(id: string): Resource[] {
    return (this.children.get(id) ?? []).flatMap((child) => [child, ...this.below(child.id)]);
  }
}

function grouped(resources: readonly Resource[]): Map<string | null, Resource[]> {
  const children = new Map<string | null, Resource[]>();
  for (const resource of resources) {
    const parent = resource.parent?.id ?? null;
    const siblings = children.get(parent);
    if (siblings) siblings.push(resource);
    else children.set(parent, [resource]);
  }
  return children;
}

/** Not reactive itself: a catalogue is asked for inside `$derived`, which must not change what it reads. */
const known = new Map<string, Catalogue>();

/** A file that is applied changes many resources at once, and they are read once. */
const GATHER_MS = 200;

/**
 * The catalogue of a site; reading it begins with the first who asks. Ask in a `$derived` of its own: what Svelte creates
 * inside a reaction, that reaction does not follow.
 */
export function catalogueOf(site: string): Catalogue {
  let catalogue = known.get(site);
  if (!catalogue) {
    catalogue = new Catalogue(site);
    known.set(site, catalogue);
    void catalogue.refresh();
  }
  return catalogue;
}

/** What another person may see is not what this one saw. */
export function forgetCatalogues(): void {
  known.clear();
}

/** Reads a catalogue again when an event says that it changed. */
export function followCatalogues(): () => void {
  const due = new Set<string>();
  const refresh = (catalogue: Catalogue) => {
    if (due.has(catalogue.site)) return;
    due.add(catalogue.site);
    setTimeout(() => {
      due.delete(catalogue.site);
      void catalogue.refresh();
    }, GATHER_MS);
  };
  const stopHearing = live.hear((event) => {
    const catalogue = event.site && known.get(event.site.name);
    if (catalogue && isOf(event.kind, ['resource', 'type'])) refresh(catalogue);
  });
  const stopHealing = live.healed(() => known.forEach(refresh));
  return () => {
    stopHearing();
    stopHealing();
  };
}
