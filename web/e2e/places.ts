/** Every route of the app as an address that the demo can show, and whose page it is. */
import { fill } from '../src/routing/match';
import { routes, type Access } from '../src/routing/routes';
import { call, type Who } from './people';

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
  const params = { site: 'torino', resource: 'gpu-01', reservation: '' };
  if (route.path.includes(':reservation')) {
    const mine = await call<{ items: { id: string; site: { name: string } }[] }>('priya', baseURL, 'GET', '/me/reservations?state=confirmed&limit=50');
    const booking = mine.items.find((item) => item.site.name === 'torino') ?? mine.items[0];
    Object.assign(params, { reservation: booking?.id, site: booking?.site.name });
  }
  // A search that was already made shows more of the page.
  const query = name === 'find' ? '?what=gpu&for=4h' : '';
  const hash = name === 'reset-password' ? '#not-a-token' : '';
  return { name, who, path: fill(route.path, params) + query + hash };
}
