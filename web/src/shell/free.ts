/** How much of each type is free now. */
import type { FreeResource, Resource, ResourceType } from '../api/types';

export interface FreeCount {
  readonly type: string;
  readonly title: string;
  readonly free: number;
  readonly all: number;
}

/** Types that a site has most of come first. What is divisible is left out: "free" would say nothing of how much. */
export function freeByType(
  resources: readonly Resource[],
  free: readonly FreeResource[],
  types: readonly ResourceType[],
): FreeCount[] {
  const freeIds = new Set(free.filter((item) => item.status === 'ACTIVE' && item.free.length > 0).map((item) => item.resource.id));
  const counts = new Map<string, { free: number; all: number }>();
  for (const resource of resources) {
    if (resource.capacity) continue;
    const count = counts.get(resource.type.name) ?? { free: 0, all: 0 };
    count.all += 1;
    if (freeIds.has(resource.id)) count.free += 1;
    counts.set(resource.type.name, count);
  }
  const titles = new Map(types.map((type) => [type.name, type.title]));
  return [...counts]
    .map(([type, count]) => ({ type, title: titles.get(type) ?? type, ...count }))
    .sort((a, b) => b.all - a.all || a.type.localeCompare(b.type));
}
