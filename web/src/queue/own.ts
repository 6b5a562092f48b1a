/** One's own work in the queues of several sites. */
import { Failure } from '../api/problem';
import * as client from './client';
import { inOrder } from './order';
import type { Workload } from './types';

export async function ownWork(sites: readonly string[], login: string): Promise<Workload[]> {
  return inOrder((await Promise.all(sites.map((site) => ownIn(site, login)))).flat());
}

/** A site whose queue one may not see has nothing of one's own in it. */
async function ownIn(site: string, owner: string): Promise<Workload[]> {
  try {
    return await client.list(site, { owner });
  } catch (thrown) {
    if (thrown instanceof Failure && (thrown.isForbidden || thrown.isMissing)) return [];
    throw thrown;
  }
}
