/** A booking that is being asked for: what the panel edits, the timeline draws and the server judges. */
import type { Resource, ResourceType, WantedResource } from '../api/types';
import type { Catalogue } from '../data/catalogue.svelte';
import type { Answers } from './parameters';
import type { Repeat } from './repeat';

export class BookingDraft {
  /** Names of resources, with how much of those that are divisible. */
  wanted = $state<{ name: string; amount: number | null }[]>([]);
  start = $state(0);
  end = $state(0);
  title = $state('');
  answers = $state<Answers>({});
  isPrivate = $state(false);
  project = $state('');
  onBehalfOf = $state('');
  repeat = $state.raw<Repeat | null>(null);
  skipConflicts = $state(false);

  constructor(
    readonly site: string,
    readonly catalogue: Catalogue,
  ) {}

  get resources(): Resource[] {
    return this.wanted.map(({ name }) => this.catalogue.byName.get(name)).filter((found) => found !== undefined);
  }

  /** The types whose forms are to be filled in. */
  get types(): ResourceType[] {
    const names = new Set(this.resources.map((resource) => resource.type.name));
    return [...names].map((name) => this.catalogue.typeByName.get(name)).filter((found) => found !== undefined);
  }

  get isTimeRight(): boolean {
    return this.start > 0 && this.end > this.start;
  }

  add(name: string): void {
    const resource = this.catalogue.byName.get(name);
    if (!resource || this.wanted.some((one) => one.name === name)) return;
    this.wanted.push({ name, amount: resource.capacity ? 1 : null });
  }

  remove(name: string): void {
    this.wanted = this.wanted.filter((one) => one.name !== name);
  }

  wantedResources(): WantedResource[] {
    return this.wanted.map(({ name, amount }) => ({ resource: name, ...(amount === null ? {} : { amount }) }));
  }

  moments(): { start: string; end: string } {
    return { start: new Date(this.start).toISOString(), end: new Date(this.end).toISOString() };
  }
}
