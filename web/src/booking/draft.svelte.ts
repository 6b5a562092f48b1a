/** A booking that is being asked for: what the panel edits, the timeline draws and the server judges. */
import type { AtEnd, Resource, ResourceType, WantedResource } from '../api/types';
import type { Catalogue } from '../data/catalogue.svelte';
import type { Answers } from './parameters';
import type { Repeat } from './repeat';
import { emptyWish, wishOf, type Wishing } from './wish';
import type { Lending } from './work';

export class BookingDraft {
  /** These resources by their names, or any of a kind. */
  by = $state<'name' | 'kind'>('name');
  /** Names of resources, with how much of those that are divisible. */
  wanted = $state<{ name: string; amount: number | null }[]>([]);
  start = $state(0);
  end = $state(0);
  wish = $state<Wishing>(emptyWish());
  /** The types of what the wish would be given as things stand: their forms are asked for. */
  foundTypes = $state<readonly string[]>([]);
  /** Keep exactly what is found. */
  isPinned = $state(false);
  title = $state('');
  answers = $state<Answers>({});
  isPrivate = $state(false);
  atEnd = $state<AtEnd>('stop');
  lending = $state<Lending>('site');
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
    const wished = this.catalogue.typeByName.has(this.wish.what.trim()) ? [this.wish.what.trim()] : this.foundTypes;
    const names = this.by === 'kind' ? wished : this.resources.map((resource) => resource.type.name);
    return [...new Set(names)].map((name) => this.catalogue.typeByName.get(name)).filter((found) => found !== undefined);
  }

  get isTimeRight(): boolean {
    return this.start > 0 && this.end > this.start;
  }

  /** Enough is known to ask the server about it. */
  get isWhole(): boolean {
    return this.by === 'kind' ? wishOf(this.wish) !== null : this.wanted.length > 0 && this.isTimeRight;
  }

  /** Whether what is wished for comes in amounts. */
  get isDivisible(): boolean {
    const what = this.wish.what.trim();
    return this.catalogue.resources.some((resource) => resource.type.name === what && resource.capacity);
  }

  /** From these resources to any like them, at the same time. */
  chooseBy(by: 'name' | 'kind'): void {
    this.by = by;
    if (by === 'name' || this.wish.what !== '') return;
    this.wish.what = this.resources[0]?.type.name ?? '';
    this.wish.variants = [{ count: Math.max(1, this.wanted.length), length: this.end - this.start }];
    this.wish.earliest = this.start;
    this.wish.before = this.end;
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
