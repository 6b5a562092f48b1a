/** A site's policies and those of all sites have addresses of their own, and are otherwise the same. */
import { api, call } from '../../../api/client';
import type { PolicyChange, PolicyList, PolicyScope, PolicyVersion, Policy } from '../../../api/types';

export function list(site: string | undefined): Promise<PolicyList> {
  return site ? call(api.GET('/sites/{site}/policies', { params: { path: { site } } })) : call(api.GET('/policies'));
}

interface Options {
  readonly dryRun: boolean;
  readonly reason: string;
  /** Of the policy as it was read; none where there was none. */
  readonly version: number | undefined;
}

const header = (version: number | undefined) => (version === undefined ? {} : { 'If-Match': `"${version}"` });

function part(scope: Exclude<PolicyScope, string>) {
  const { type, role, project } = scope.site;
  return { ...(type ? { type } : {}), ...(role ? { role } : {}), ...(project ? { project } : {}) };
}

export function put(site: string | undefined, scope: PolicyScope, policy: Policy, options: Options): Promise<PolicyChange> {
  const body = { policy, ...(options.reason ? { reason: options.reason } : {}) };
  const query = { dry_run: options.dryRun };
  if (typeof scope === 'string') {
    return call(api.PUT('/policies/{scope}', { params: { path: { scope }, query, header: header(options.version) }, body }));
  }
  const params = { path: { site: site ?? '' }, query: { ...query, ...part(scope) }, header: header(options.version) };
  return call(api.PUT('/sites/{site}/policy', { params, body }));
}

export function remove(site: string | undefined, { scope, version }: PolicyVersion, reason: string): Promise<PolicyChange> {
  const query = reason ? { reason } : {};
  if (typeof scope === 'string') {
    return call(api.DELETE('/policies/{scope}', { params: { path: { scope }, query, header: header(version) } }));
  }
  const params = { path: { site: site ?? '' }, query: { ...query, ...part(scope) }, header: header(version) };
  return call(api.DELETE('/sites/{site}/policy', { params }));
}

export function history(site: string | undefined, scope: PolicyScope): Promise<PolicyList> {
  if (typeof scope === 'string') return call(api.GET('/policies/{scope}/history', { params: { path: { scope } } }));
  return call(api.GET('/sites/{site}/policy/history', { params: { path: { site: site ?? '' }, query: part(scope) } }));
}
