/** The calls of sessions. */
import { api, call } from '../api/client';
import { all } from '../api/pages';
import { Failure } from '../api/problem';
import type { Access, NewSession, Session, SessionVisit, StartableProfile, StartSession, StopSession } from '../api/types';

interface Wanted {
  /** For admins of the site. */
  readonly everybody?: boolean;
  /** Only what waits or runs. */
  readonly live?: boolean;
}

export async function list(site: string, query: Wanted = {}): Promise<Session[]> {
  return (await call(api.GET('/sites/{site}/sessions', { params: { path: { site }, query } }))).items;
}

/** By its id, or by its name where it is one's own. */
export function read(site: string, session: string): Promise<Session> {
  return call(api.GET('/sites/{site}/sessions/{session}', { params: { path: { site, session } } }));
}

export async function profiles(site: string): Promise<StartableProfile[]> {
  return (await call(api.GET('/sites/{site}/session-profiles', { params: { path: { site } } }))).items;
}

export async function resume(site: string, profile: string): Promise<void> {
  await call(api.POST('/sites/{site}/session-profiles/{profile}/resume', { params: { path: { site, profile } } }));
}

export function start(site: string, body: NewSession, key: { readonly 'Idempotency-Key': string }): Promise<Session> {
  return call(api.POST('/sites/{site}/sessions', { params: { path: { site }, header: key }, body }));
}

/** As it was; outside of its reservation where that is over. */
export async function startAgain({ site, id, inside }: Session): Promise<Session> {
  const path = { site: site.name, session: id };
  // The description gives what can be left out a default, which the generated type takes for a duty.
  const begin = (body: Partial<StartSession>) => call(api.POST('/sites/{site}/sessions/{session}/start', { params: { path }, body: body as StartSession }));
  if (!inside) return begin({});
  try {
    return await begin({ inside });
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.fieldMessage('inside') !== undefined) return begin({});
    throw thrown;
  }
}

export function stop({ site, id }: Session, reason: string): Promise<Session> {
  const body = (reason ? { reason } : {}) as StopSession;
  return call(api.POST('/sites/{site}/sessions/{session}/stop', { params: { path: { site: site.name, session: id } }, body }));
}

/** For so long it is left alone, as a period. */
export function keep({ site, id }: Session, length: string): Promise<Session> {
  return call(api.POST('/sites/{site}/sessions/{session}/keep', { params: { path: { site: site.name, session: id } }, body: { for: length } }));
}

export function rename({ site, id }: Session, name: string): Promise<Session> {
  return call(api.PATCH('/sites/{site}/sessions/{session}', { params: { path: { site: site.name, session: id } }, body: { name } }));
}

/** Lets somebody in, by login; or out again, without an access. */
export function share({ site, id }: Session, login: string, access?: Access): Promise<Session> {
  const body = { with: login, ...(access ? { access } : {}) };
  return call(api.POST('/sites/{site}/sessions/{session}/share', { params: { path: { site: site.name, session: id } }, body }));
}

export async function remove({ site, id }: Session): Promise<void> {
  await call(api.DELETE('/sites/{site}/sessions/{session}', { params: { path: { site: site.name, session: id } } }));
}

export async function log({ site, id }: Session): Promise<string> {
  return (await call(api.GET('/sites/{site}/sessions/{session}/log', { params: { path: { site: site.name, session: id } } }))).text;
}

export async function visits({ site, id }: Session): Promise<SessionVisit[]> {
  return (await call(api.GET('/sites/{site}/sessions/{session}/visits', { params: { path: { site: site.name, session: id } } }))).items;
}

// Until docs/openapi.json is printed anew, the type of this route stands here.
type OpenVisits = (path: '/sites/{site}/sessions/{session}/visits', init: object) => ReturnType<typeof api.POST>;

/** Where an admin comes in to somebody else's session, for a reason that its owner reads; to a path inside, or its front. */
export async function visit({ site, id }: Session, reason: string, to: string): Promise<string> {
  const post = api.POST as unknown as OpenVisits;
  const answer = await call(post('/sites/{site}/sessions/{session}/visits', { params: { path: { site: site.name, session: id } }, body: { reason, ...(to ? { to } : {}) } }));
  return (answer as unknown as { url: string }).url;
}

/** Those that something can be started in, as one writes them. */
export async function environments(site: string): Promise<string[]> {
  const found = await all((query) => call(api.GET('/sites/{site}/environments', { params: { path: { site }, query } })));
  return found.filter(({ state }) => state === 'ready').map(({ reference }) => reference);
}

/** The site of a session that is known only by its id; null where none of these has it. */
export async function siteOf(sites: readonly string[], session: string): Promise<string | null> {
  const found = await Promise.all(sites.map((site) => isIn(site, session)));
  return sites.find((_, index) => found[index]) ?? null;
}

async function isIn(site: string, session: string): Promise<boolean> {
  try {
    await read(site, session);
    return true;
  } catch (thrown) {
    if (thrown instanceof Failure && (thrown.isForbidden || thrown.isMissing || thrown.status === 400 || thrown.status === 422)) return false;
    throw thrown;
  }
}
