/** Every route of the app as an address that the demo can show, and whose page it is. */
import { fill } from '../src/routing/match';
import { routes, type Access } from '../src/routing/routes';
import { call, type Who } from './people';
import { started, withPresets } from './sessions';

const WHO: Record<Access, Who | null> = { anyone: null, person: 'priya', site_admin: 'marco', global_admin: 'ines' };

export interface Place {
  readonly name: string;
  readonly who: Who | null;
  readonly path: string;
}

/** The names are known before anything runs; the addresses only once the demo was asked for a booking. */
export const names = routes.map((route) => route.name);

export async function placeOf(name: string, baseURL: string): Promise<Place> {
  const route = routes.find((one) => one.name === name);
  if (!route) throw new Error(`no route is called ${name}`);
  const who = WHO[route.access];
  const params = { site: 'torino', resource: 'gpu-01', reservation: '', series: '', workload: '', session: '', person: 'priya' };
  if (route.path.includes(':reservation')) {
    const mine = await call<{ items: { id: string; site: { name: string } }[] }>('priya', baseURL, 'GET', '/me/reservations?state=confirmed&limit=50');
    const booking = mine.items.find((item) => item.site.name === 'torino') ?? mine.items[0];
    Object.assign(params, { reservation: booking?.id, site: booking?.site.name });
  }
  if (route.path.includes(':series')) Object.assign(params, { series: await someSeries(baseURL) });
  if (route.path.includes(':workload')) Object.assign(params, { workload: await someWorkload(baseURL) });
  if (name === 'environments') await someEnvironment(baseURL);
  if (route.path.includes(':session')) Object.assign(params, { session: await someSession(baseURL) });
  if (name === 'sessions') await withPresets(baseURL);
  // A search that was already made shows more of the page.
  const query = name === 'find' ? '?what=gpu&for=4h' : '';
  const hash = name === 'reset-password' ? '#not-a-token' : '';
  return { name, who, path: fill(route.path, params) + query + hash };
}

/** One that waits, if any does: its page shows more. */
async function someWorkload(baseURL: string): Promise<string> {
  const list = await call<{ items: { number: number; state: string }[] }>('priya', baseURL, 'GET', '/sites/torino/workloads?limit=500');
  const found = list.items.find(({ state }) => state === 'WAITING') ?? list.items[0];
  if (!found) throw new Error('the demo’s queue is empty');
  return String(found.number);
}

/** The demo has none, so one is made for its page. */
async function someEnvironment(baseURL: string): Promise<void> {
  const known = await call<{ items: unknown[] }>('priya', baseURL, 'GET', '/sites/torino/environments');
  if (known.items.length > 0) return;
  await call('priya', baseURL, 'POST', '/sites/torino/environments', { name: 'vision', packages: ['torch>=2.1', 'torchvision', 'timm'] });
}

/** One that is on its way, which shows most; made once for all pages that show it. */
async function someSession(baseURL: string): Promise<string> {
  const { items } = await call<{ items: { id: string; profile: string; state: string }[] }>('priya', baseURL, 'GET', '/sites/torino/sessions?live=true');
  const known = items.find(({ profile, state }) => profile === 'e2e-never' && state === 'waiting');
  return known?.id ?? (await started(baseURL, 'e2e-never')).id;
}

/** The demo has none, so one is made for its page: far ahead, where it is in nobody's way. */
async function someSeries(baseURL: string): Promise<string> {
  const known = await call<{ items: { id: string }[] }>('priya', baseURL, 'GET', '/sites/torino/series?owner=priya&limit=1');
  if (known.items[0]) return known.items[0].id;
  const day = new Date(Date.now() + 320 * 24 * 3_600_000).toISOString().slice(0, 10);
  const body = { title: 'Weekly evaluation', start: `${day}T09:00:00Z`, end: `${day}T11:00:00Z`, resources: [{ resource: 'bench-gpu' }], rule: 'FREQ=DAILY;COUNT=3' };
  return (await call<{ id: string }>('priya', baseURL, 'POST', '/sites/torino/series', body)).id;
}
