/** Reads a site's resource counts; `resource-counts.ts` adds them up. */
import { api, call } from '../api/client';
import type { ResourceCount } from '../api/types';

/** What makes the counts old. */
export const COUNT_FAMILIES = ['reservation', 'maintenance', 'resource', 'type', 'workload', 'queue'] as const;

export async function readCounts(site: string): Promise<readonly ResourceCount[]> {
  return (await call(api.GET('/sites/{site}/resource-counts', { params: { path: { site } } }))).items;
}
