/** The pages of organisers: what the menu lists, and who sees which entry. Add a page here. */
import * as m from '$lib/text/messages';
import type { AdminIconName } from './AdminIcon.svelte';
import type { AdminRole } from './roles';

export interface AdminEntry {
  readonly href: string;
  readonly label: () => string;
  readonly icon: AdminIconName;
  readonly group: 'sale' | 'people' | 'system';
  readonly roles: readonly AdminRole[];
}

const EVENT_READERS = ['organiser', 'support', 'admin'] as const;

/** In the order of the menu. On phones the first four that a role may use are always visible. */
export const ENTRIES: readonly AdminEntry[] = [
  {
    href: '/admin',
    label: m.admin_nav_home,
    icon: 'board',
    group: 'sale',
    roles: EVENT_READERS,
  },
  {
    href: '/admin/events',
    label: m.admin_nav_events,
    icon: 'calendar',
    group: 'sale',
    roles: EVENT_READERS,
  },
  {
    href: '/admin/reservations',
    label: m.admin_nav_reservations,
    icon: 'ticket',
    group: 'sale',
    roles: EVENT_READERS,
  },
  {
    href: '/admin/payments',
    label: m.admin_nav_payments,
    icon: 'card',
    group: 'sale',
    roles: EVENT_READERS,
  },
  {
    href: '/admin/statistics',
    label: m.admin_nav_statistics,
    icon: 'chart',
    group: 'sale',
    roles: ['organiser', 'admin'],
  },
  {
    href: '/admin/halls',
    label: m.admin_nav_halls,
    icon: 'hall',
    group: 'sale',
    roles: ['organiser', 'admin'],
  },
  {
    href: '/admin/check-in',
    label: m.adminCheckIn_title,
    icon: 'scan',
    group: 'sale',
    roles: ['staff', 'organiser', 'admin'],
  },
  {
    href: '/admin/transfers',
    label: m.admin_nav_transfers,
    icon: 'swap',
    group: 'sale',
    roles: EVENT_READERS,
  },
  {
    href: '/admin/members',
    label: m.admin_nav_members,
    icon: 'star',
    group: 'people',
    roles: EVENT_READERS,
  },
  {
    href: '/admin/moderation',
    label: m.admin_nav_moderation,
    icon: 'flag',
    group: 'people',
    roles: EVENT_READERS,
  },
  {
    href: '/admin/news',
    label: m.admin_nav_news,
    icon: 'megaphone',
    group: 'people',
    roles: ['organiser', 'admin'],
  },
  {
    href: '/admin/users',
    label: m.admin_nav_users,
    icon: 'people',
    group: 'people',
    roles: ['support', 'admin'],
  },
  {
    href: '/admin/mails',
    label: m.admin_nav_mails,
    icon: 'mail',
    group: 'system',
    roles: ['support', 'admin'],
  },
  {
    href: '/admin/log',
    label: m.admin_nav_log,
    icon: 'list',
    group: 'system',
    roles: ['admin'],
  },
  {
    href: '/admin/dead-letters',
    label: m.admin_nav_letters,
    icon: 'wrench',
    group: 'system',
    roles: ['admin'],
  },
  {
    href: '/admin/settings',
    label: m.admin_nav_settings,
    icon: 'settings',
    group: 'system',
    roles: ['admin'],
  },
];

export interface EventTab {
  /** What follows `/admin/events/{id}`. */
  readonly path: string;
  readonly label: () => string;
  readonly roles: readonly AdminRole[];
}

/** The pages of one event, shown below its name. */
export const EVENT_TABS: readonly EventTab[] = [
  { path: '', label: m.admin_tab_overview, roles: EVENT_READERS },
  { path: '/live', label: m.admin_tab_live, roles: EVENT_READERS },
  { path: '/edit', label: m.admin_tab_edit, roles: ['organiser', 'admin'] },
  { path: '/tickets', label: m.admin_tab_tickets, roles: ['organiser', 'admin'] },
  { path: '/house', label: m.admin_tab_house, roles: ['organiser', 'admin'] },
  { path: '/settlement', label: m.admin_tab_settlement, roles: EVENT_READERS },
  { path: '/staff', label: m.admin_tab_staff, roles: ['organiser', 'admin'] },
];

export function entriesFor(role: AdminRole): AdminEntry[] {
  return ENTRIES.filter((entry) => entry.roles.includes(role));
}

/** Whether an entry leads to the page of a route, or to a page above it. */
export function isCurrent(entry: AdminEntry, route: string): boolean {
  return route === entry.href || (entry.href !== '/admin' && route.startsWith(`${entry.href}/`));
}

/** Whether a role may open a route. Pages that no entry leads to are open to all of them. */
export function mayOpen(role: AdminRole, route: string): boolean {
  const [entry] = ENTRIES.filter((one) => isCurrent(one, route)).sort(
    (a, b) => b.href.length - a.href.length,
  );
  return !entry || entry.roles.includes(role);
}

/** Where a role begins. */
export function firstPage(role: AdminRole): string {
  return entriesFor(role)[0]?.href ?? '/';
}
