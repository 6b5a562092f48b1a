/** Where the navigation leads: one list for the header, the menus and the command palette. */
import type { IconName } from '../design/icons';
import type { Messages } from '../i18n/en';

export interface Place {
  readonly path: string;
  readonly label: string;
  readonly icon: IconName;
  /** A word for the bar at the foot of a phone, where the label has no room. */
  readonly short?: string;
}

/** For everyone, always in sight. */
export function mainPlaces(t: Messages, site: string | undefined): Place[] {
  return [
    { path: site ? `/sites/${site}` : '/', label: t.nav.timeline, short: t.nav.short.timeline, icon: 'timeline' },
    ...(site ? [{ path: `/sites/${site}/sessions`, label: t.nav.sessions, short: t.nav.short.sessions, icon: 'screen' } satisfies Place] : []),
    { path: '/bookings', label: t.nav.bookings, short: t.nav.short.bookings, icon: 'calendar' },
    { path: '/find', label: t.nav.find, short: t.nav.short.find, icon: 'search' },
    ...(site ? [{ path: `/sites/${site}/queue`, label: t.nav.queue, short: t.nav.short.queue, icon: 'list' } satisfies Place] : []),
  ];
}

export function ownPlaces(t: Messages, site: string | undefined): Place[] {
  return [
    { path: '/me', label: t.nav.profile, icon: 'person' },
    { path: '/me/tokens', label: t.nav.tokens, icon: 'key' },
    { path: '/me/feeds', label: t.nav.feeds, icon: 'calendar' },
    ...(site ? [{ path: `/sites/${site}/usage`, label: t.nav.myUsage, icon: 'chart' } satisfies Place] : []),
    { path: '/sites', label: t.nav.sites, icon: 'site' },
  ];
}

/** Beside the queue itself; one gets there from it, or by typing. */
export function queuePlaces(t: Messages, site: string): Place[] {
  return [
    { path: `/sites/${site}/queue/submit`, label: t.nav.submit, icon: 'plus' },
    { path: `/sites/${site}/queue/shares`, label: t.nav.shares, icon: 'rule' },
    { path: `/sites/${site}/environments`, label: t.nav.environments, icon: 'chip' },
  ];
}

export function siteAdminPlaces(t: Messages, site: string): Place[] {
  const below = (path: string) => `/sites/${site}/admin/${path}`;
  return [
    { path: below('resources'), label: t.nav.resources, icon: 'chip' },
    { path: below('types'), label: t.nav.types, icon: 'edit' },
    { path: below('policies'), label: t.nav.policies, icon: 'rule' },
    { path: below('queue'), label: t.nav.queueSettings, icon: 'list' },
    { path: below('sessions'), label: t.nav.sessions, icon: 'screen' },
    { path: below('maintenance'), label: t.nav.maintenance, icon: 'wrench' },
    { path: below('members'), label: t.nav.members, icon: 'person' },
    { path: below('projects'), label: t.nav.projects, icon: 'project' },
    { path: below('closures'), label: t.nav.closures, icon: 'calendar' },
    { path: `/sites/${site}/usage`, label: t.nav.usage, icon: 'chart' },
    { path: below('file'), label: t.nav.file, icon: 'download' },
    { path: below('audit'), label: t.nav.audit, icon: 'history' },
    { path: below('settings'), label: t.nav.settings, icon: 'gear' },
  ];
}

export function globalAdminPlaces(t: Messages): Place[] {
  return [
    { path: '/admin/people', label: t.nav.people, icon: 'person' },
    { path: '/admin/policies', label: t.nav.policies, icon: 'rule' },
    { path: '/admin/usage', label: t.nav.usage, icon: 'chart' },
    { path: '/admin/health', label: t.nav.health, icon: 'health' },
    { path: '/admin/audit', label: t.nav.audit, icon: 'history' },
  ];
}
