/** The queue's calls, with the queue's own types. */
import { api, call, ifMatch } from '../api/client';
import { all } from '../api/pages';
import type * as generated from '../api/types';
import type { Grant, NewGrant, NewWorkload, QueueCounts, Settings, SettingsView, Share, Workload, WorkloadPreview } from './types';

interface Wanted {
  readonly owner?: string;
  readonly project?: string;
  /** In its title, its number or its owner's name. */
  readonly text?: string;
  /** Divided by commas; those that are not over, if left out. */
  readonly state?: string;
  readonly since?: string;
}

/** More than a page can show, and few enough to be read again when something happens. */
export const LIST_MOST = 2_000;

export async function list(site: string, wanted: Wanted = {}): Promise<Workload[]> {
  const found = await all((page) => call(api.GET('/sites/{site}/workloads', { params: { path: { site }, query: { ...wanted, ...page } } })), LIST_MOST);
  return found;
}

/** By its number or its id. */
export async function read(site: string, workload: string): Promise<Workload> {
  return (await call(api.GET('/sites/{site}/workloads/{workload}', { params: { path: place(site, workload) } })));
}

export async function submit(site: string, body: NewWorkload, key: { readonly 'Idempotency-Key': string }): Promise<Workload> {
  const params = { path: { site }, header: key };
  // Only a dry run is answered with a preview.
  return (await call(api.POST('/sites/{site}/workloads', { params, body }))) as Workload;
}

/** What would become of it; nothing is submitted. */
export async function preview(site: string, body: NewWorkload): Promise<WorkloadPreview> {
  const params = { path: { site }, query: { dry_run: true } };
  return (await call(api.POST('/sites/{site}/workloads', { params, body }))) as WorkloadPreview;
}

/** How much waits and runs, and whose it is, however long the queue. */
export function counts(site: string): Promise<QueueCounts> {
  return call(api.GET('/sites/{site}/queue/counts', { params: { path: { site } } }));
}

export async function hold(site: string, number: number): Promise<Workload> {
  return (await call(api.POST('/sites/{site}/workloads/{workload}/hold', { params: { path: { site, workload: number } } })));
}

export async function release(site: string, number: number): Promise<Workload> {
  return (await call(api.POST('/sites/{site}/workloads/{workload}/release', { params: { path: { site, workload: number } } })));
}

export async function extend(site: string, number: number, by: string): Promise<Workload> {
  return (await call(api.POST('/sites/{site}/workloads/{workload}/extend', { params: { path: { site, workload: number } }, body: { by } })));
}

/** All of it, or only one task of an array. */
export async function cancel(site: string, number: number, reason: string, task?: number): Promise<Workload> {
  const body = { ...(reason ? { reason } : {}), ...(task === undefined ? {} : { tasks: String(task) }) };
  return (await call(api.POST('/sites/{site}/workloads/{workload}/cancel', { params: { path: { site, workload: number } }, body })));
}

/** The last of what its newest run said; for its owner and admins. */
export async function log(site: string, number: number): Promise<string> {
  return (await call(api.GET('/sites/{site}/workloads/{workload}/log', { params: { path: { site, workload: number } } }))).text;
}

export function shares(site: string): Promise<Share[]> {
  return all((query) => call(api.GET('/sites/{site}/queue/shares', { params: { path: { site }, query } })));
}

export function grants(site: string): Promise<Grant[]> {
  return all((query) => call(api.GET('/sites/{site}/queue/grants', { params: { path: { site }, query } })));
}

export function give(site: string, body: NewGrant, key: { readonly 'Idempotency-Key': string }): Promise<Grant> {
  return call(api.POST('/sites/{site}/queue/grants', { params: { path: { site }, header: key }, body }));
}

export async function revoke(site: string, grant: string): Promise<void> {
  await call(api.DELETE('/sites/{site}/queue/grants/{grant}', { params: { path: { site, grant } } }));
}

export async function settings(site: string): Promise<SettingsView> {
  return (await call(api.GET('/sites/{site}/queue/settings', { params: { path: { site } } }))) as SettingsView;
}

export async function saveSettings(site: string, next: Settings, version: number): Promise<SettingsView> {
  const params = { path: { site }, header: ifMatch(version) };
  return (await call(api.PUT('/sites/{site}/queue/settings', { params, body: next as unknown as generated.QueueSettings }))) as SettingsView;
}

// The API takes a number or an id where its description knows only of the number.
function place(site: string, workload: string): { site: string; workload: number } {
  return { site, workload: workload as unknown as number };
}
