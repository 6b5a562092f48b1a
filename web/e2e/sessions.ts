/** Presets for sessions at the demo's simulated site: nothing answers there, so what is started stays on its way. */
import { call } from './people';

interface Settings {
  readonly settings: { readonly profiles: Record<string, object>; readonly apps?: Record<string, object> };
}

/** More than any site has: it waits for ever, and says why. */
const TOO_MUCH = 9_000_000;

function preset(title: string, app: string, cores_milli: number): object {
  return { title, wishes: [{ task: { cores_milli, memory_mib: 1_024 }, limit: 'PT1H' }], session: { app, idle: 'PT1H', projects: [] } };
}

export const PRESETS = {
  'e2e-lab': preset('A small notebook', 'jupyterlab', 1_000),
  'e2e-never': preset('A notebook that never begins', 'jupyterlab', TOO_MUCH),
};

export async function withPresets(baseURL: string): Promise<void> {
  const { settings } = await call<Settings>('marco', baseURL, 'GET', '/sites/torino/queue/settings');
  if (Object.keys(PRESETS).every((name) => name in settings.profiles)) return;
  await call('marco', baseURL, 'PUT', '/sites/torino/queue/settings', { ...settings, profiles: { ...settings.profiles, ...PRESETS } });
}

export interface Made {
  readonly id: string;
  readonly name: string;
  readonly state: string;
}

/** Of Priya's, with a name that no earlier run has left behind. */
export async function started(baseURL: string, profile: keyof typeof PRESETS): Promise<Made> {
  await withPresets(baseURL);
  return call<Made>('priya', baseURL, 'POST', '/sites/torino/sessions', { profile, name: `s${Date.now()}` });
}

/** Leaves nothing behind that would count against those who come after. */
export async function removed(baseURL: string, session: string): Promise<void> {
  const path = `/sites/torino/sessions/${session}`;
  const { state } = await call<Made>('priya', baseURL, 'GET', path);
  if (state !== 'stopped' && state !== 'failed') await call('priya', baseURL, 'POST', `${path}/stop`, {});
  for (;;) {
    const now = await call<Made>('priya', baseURL, 'GET', path);
    if (now.state === 'stopped' || now.state === 'failed') break;
    await new Promise((wake) => setTimeout(wake, 200));
  }
  await call('priya', baseURL, 'DELETE', path);
}
