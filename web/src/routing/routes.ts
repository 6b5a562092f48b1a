/**
 * Every page there is. The tests walk this table: a page that is not in it cannot be reached, and one that is must pass them
 * in both themes, in both languages and on a phone.
 */
import type { Component } from 'svelte';
import type { Messages } from '../i18n/en';

/** Who a page is for. The server decides what they see; this only spares people pages that would be empty for them. */
export type Access = 'anyone' | 'person' | 'site_admin' | 'global_admin';

// A page takes the named parts of its path as properties; which ones is between the path and the page.
type Page = Component<any>;

export interface Route {
  readonly name: string;
  readonly path: string;
  readonly access: Access;
  readonly title: (t: Messages) => string;
  readonly load: () => Promise<{ default: Page }>;
}

export const routes: readonly Route[] = [
  {
    name: 'home',
    path: '/',
    access: 'person',
    title: (t) => t.nav.timeline,
    load: () => import('../pages/home/HomePage.svelte'),
  },
  {
    name: 'all-sites',
    path: '/all',
    access: 'person',
    title: (t) => t.nav.allSites,
    load: () => import('../pages/board/AllSitesPage.svelte'),
  },
  {
    name: 'site',
    path: '/sites/:site',
    access: 'person',
    title: (t) => t.nav.timeline,
    load: () => import('../pages/board/SitePage.svelte'),
  },
  {
    name: 'booking',
    path: '/sites/:site/bookings/:reservation',
    access: 'person',
    title: (t) => t.booking.one,
    load: () => import('../pages/booking/BookingPage.svelte'),
  },
  {
    name: 'series',
    path: '/sites/:site/series/:series',
    access: 'person',
    title: (t) => t.series.one,
    load: () => import('../pages/series/SeriesPage.svelte'),
  },
  {
    name: 'resource',
    path: '/sites/:site/resources/:resource',
    access: 'person',
    title: (t) => t.common.resource,
    load: () => import('../pages/resource/ResourcePage.svelte'),
  },
  {
    name: 'bookings',
    path: '/bookings',
    access: 'person',
    title: (t) => t.nav.bookings,
    load: () => import('../pages/bookings/BookingsPage.svelte'),
  },
  {
    name: 'find',
    path: '/find',
    access: 'person',
    title: (t) => t.nav.find,
    load: () => import('../pages/find/FindPage.svelte'),
  },
  {
    name: 'approvals',
    path: '/approvals',
    access: 'person',
    title: (t) => t.nav.approvals,
    load: () => import('../pages/approvals/ApprovalsPage.svelte'),
  },
  {
    name: 'notifications',
    path: '/notifications',
    access: 'person',
    title: (t) => t.nav.notifications,
    load: () => import('../pages/notifications/NotificationsPage.svelte'),
  },
  {
    name: 'sites',
    path: '/sites',
    access: 'person',
    title: (t) => t.nav.sites,
    load: () => import('../pages/sites/SitesPage.svelte'),
  },
  {
    name: 'profile',
    path: '/me',
    access: 'person',
    title: (t) => t.nav.profile,
    load: () => import('../pages/me/ProfilePage.svelte'),
  },
  {
    name: 'tokens',
    path: '/me/tokens',
    access: 'person',
    title: (t) => t.nav.tokens,
    load: () => import('../pages/me/TokensPage.svelte'),
  },
  {
    name: 'feeds',
    path: '/me/feeds',
    access: 'person',
    title: (t) => t.nav.feeds,
    load: () => import('../pages/me/FeedsPage.svelte'),
  },
  {
    name: 'admin-resources',
    path: '/sites/:site/admin/resources',
    access: 'site_admin',
    title: (t) => t.nav.resources,
    load: () => import('../pages/admin/tree/TreePage.svelte'),
  },
  {
    name: 'admin-types',
    path: '/sites/:site/admin/types',
    access: 'site_admin',
    title: (t) => t.nav.types,
    load: () => import('../pages/admin/types/TypesPage.svelte'),
  },
  {
    name: 'admin-policies',
    path: '/sites/:site/admin/policies',
    access: 'site_admin',
    title: (t) => t.nav.policies,
    load: () => import('../pages/admin/policies/PoliciesPage.svelte'),
  },
  {
    name: 'admin-maintenance',
    path: '/sites/:site/admin/maintenance',
    access: 'site_admin',
    title: (t) => t.nav.maintenance,
    load: () => import('../pages/admin/maintenance/MaintenancePage.svelte'),
  },
  {
    name: 'admin-members',
    path: '/sites/:site/admin/members',
    access: 'site_admin',
    title: (t) => t.nav.members,
    load: () => import('../pages/admin/members/MembersPage.svelte'),
  },
  {
    name: 'admin-projects',
    path: '/sites/:site/admin/projects',
    access: 'site_admin',
    title: (t) => t.nav.projects,
    load: () => import('../pages/admin/projects/ProjectsPage.svelte'),
  },
  {
    name: 'admin-closures',
    path: '/sites/:site/admin/closures',
    access: 'site_admin',
    title: (t) => t.nav.closures,
    load: () => import('../pages/admin/closures/ClosuresPage.svelte'),
  },
  {
    name: 'usage',
    path: '/sites/:site/usage',
    access: 'person',
    title: (t) => t.nav.usage,
    load: () => import('../pages/usage/UsagePage.svelte'),
  },
  {
    name: 'sessions',
    path: '/sites/:site/sessions',
    access: 'person',
    title: (t) => t.nav.sessions,
    load: () => import('../pages/sessions/SessionsPage.svelte'),
  },
  {
    name: 'session',
    path: '/sites/:site/sessions/:session',
    access: 'person',
    title: (t) => t.sessions.one,
    load: () => import('../pages/sessions/SessionPage.svelte'),
  },
  // Where the server sends whoever opens a session that is not ready: it knows no names of sites there.
  {
    name: 'session-anywhere',
    path: '/sessions/:session',
    access: 'person',
    title: (t) => t.sessions.one,
    load: () => import('../pages/sessions/SessionAnywherePage.svelte'),
  },
  {
    name: 'queue',
    path: '/sites/:site/queue',
    access: 'person',
    title: (t) => t.nav.queue,
    load: () => import('../pages/queue/QueuePage.svelte'),
  },
  {
    name: 'submit',
    path: '/sites/:site/queue/submit',
    access: 'person',
    title: (t) => t.nav.submit,
    load: () => import('../pages/queue/SubmitPage.svelte'),
  },
  {
    name: 'environments',
    path: '/sites/:site/environments',
    access: 'person',
    title: (t) => t.nav.environments,
    load: () => import('../pages/environments/EnvironmentsPage.svelte'),
  },
  {
    name: 'shares',
    path: '/sites/:site/queue/shares',
    access: 'person',
    title: (t) => t.nav.shares,
    load: () => import('../pages/queue/SharesPage.svelte'),
  },
  // After those with names of their own: a number is none of them.
  {
    name: 'workload',
    path: '/sites/:site/queue/:workload',
    access: 'person',
    title: (t) => t.queue.one,
    load: () => import('../pages/queue/WorkloadPage.svelte'),
  },
  {
    name: 'admin-queue',
    path: '/sites/:site/admin/queue',
    access: 'site_admin',
    title: (t) => t.nav.queueSettings,
    load: () => import('../pages/admin/queue/QueueSettingsPage.svelte'),
  },
  {
    name: 'admin-sessions',
    path: '/sites/:site/admin/sessions',
    access: 'site_admin',
    title: (t) => t.sessionsAdmin.title,
    load: () => import('../pages/admin/sessions/AdminSessionsPage.svelte'),
  },
  {
    name: 'admin-file',
    path: '/sites/:site/admin/file',
    access: 'site_admin',
    title: (t) => t.nav.file,
    load: () => import('../pages/admin/file/FilePage.svelte'),
  },
  {
    name: 'admin-audit',
    path: '/sites/:site/admin/audit',
    access: 'site_admin',
    title: (t) => t.nav.audit,
    load: () => import('../pages/admin/audit/AuditPage.svelte'),
  },
  {
    name: 'admin-settings',
    path: '/sites/:site/admin/settings',
    access: 'site_admin',
    title: (t) => t.nav.settings,
    load: () => import('../pages/admin/settings/SettingsPage.svelte'),
  },
  {
    name: 'people',
    path: '/admin/people',
    access: 'global_admin',
    title: (t) => t.nav.people,
    load: () => import('../pages/admin/people/PeoplePage.svelte'),
  },
  {
    name: 'person-tokens',
    path: '/admin/people/:person/tokens',
    access: 'global_admin',
    title: (t) => t.nav.tokens,
    load: () => import('../pages/admin/people/PersonTokensPage.svelte'),
  },
  {
    name: 'global-policies',
    path: '/admin/policies',
    access: 'global_admin',
    title: (t) => t.nav.policies,
    load: () => import('../pages/admin/policies/PoliciesPage.svelte'),
  },
  {
    name: 'global-usage',
    path: '/admin/usage',
    access: 'global_admin',
    title: (t) => t.nav.usage,
    load: () => import('../pages/usage/AllUsagePage.svelte'),
  },
  {
    name: 'health',
    path: '/admin/health',
    access: 'global_admin',
    title: (t) => t.nav.health,
    load: () => import('../pages/admin/health/HealthPage.svelte'),
  },
  {
    name: 'global-audit',
    path: '/admin/audit',
    access: 'global_admin',
    title: (t) => t.nav.audit,
    load: () => import('../pages/admin/audit/AuditPage.svelte'),
  },
  {
    name: 'sign-in',
    path: '/sign-in',
    access: 'anyone',
    title: (t) => t.signIn.submit,
    load: () => import('../pages/sign-in/SignInPage.svelte'),
  },
  {
    name: 'first-run',
    path: '/first-run',
    access: 'anyone',
    title: (t) => t.signIn.firstTitle,
    load: () => import('../pages/sign-in/FirstRunPage.svelte'),
  },
  {
    name: 'reset-password',
    path: '/reset-password',
    access: 'anyone',
    title: (t) => t.signIn.resetTitle,
    load: () => import('../pages/sign-in/ResetPage.svelte'),
  },
  {
    name: 'design',
    path: '/design',
    access: 'anyone',
    title: (t) => t.nav.design,
    load: () => import('../pages/design/DesignPage.svelte'),
  },
];
