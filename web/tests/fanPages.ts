/** The pages of fans that need no purchase, for tests that walk all of them. */
import type { Page } from '@playwright/test';
import { eventWith, firstArtist, firstNews, firstPost } from './fan';

export interface FanPage {
  readonly name: string;
  readonly path: (page: Page) => Promise<string> | string;
  /** What is visible once it has loaded, below `main`. */
  readonly ready: string;
  /** Somebody is logged in. */
  readonly fan?: true;
}

export const PAGES: readonly FanPage[] = [
  { name: 'home', path: () => '/', ready: 'article h3' },
  { name: 'events', path: () => '/events', ready: 'article h3' },
  { name: 'calendar', path: () => '/events?view=calendar&status=all', ready: 'table' },
  { name: 'search', path: () => '/search?q=ㅎㄱ', ready: 'article h3' },
  {
    name: 'an event on sale',
    path: async (page) => `/events/${await eventWith(page, 'on_sale')}`,
    ready: 'h1',
  },
  {
    name: 'a standing event',
    path: async (page) => `/events/${await eventWith(page, 'on_sale', 'standing')}`,
    ready: 'h1',
  },
  {
    name: 'an upcoming event',
    path: async (page) => `/events/${await eventWith(page, 'upcoming')}`,
    ready: 'h1',
  },
  {
    name: 'a cancelled event',
    path: async (page) => `/events/${await eventWith(page, 'cancelled')}`,
    ready: 'h1',
  },
  { name: 'artists', path: () => '/artists', ready: 'li h2' },
  { name: 'an artist', path: async (page) => `/artists/${await firstArtist(page)}`, ready: 'h1' },
  { name: 'community', path: () => '/community', ready: 'li h2' },
  {
    name: 'a post',
    path: async (page) => `/community/${await firstPost(page)}`,
    ready: 'article h1',
  },
  { name: 'writing, logged out', path: () => '/community/write', ready: '.state' },
  { name: 'writing', path: () => '/community/write', ready: 'form textarea', fan: true },
  { name: 'news', path: () => '/news', ready: 'li h2' },
  { name: 'one of the news', path: async (page) => `/news/${await firstNews(page)}`, ready: 'h1' },
  { name: 'login', path: () => '/login', ready: 'form input' },
  { name: 'forgot', path: () => '/forgot', ready: 'form input' },
  { name: 'reset', path: () => `/reset#${'0'.repeat(64)}`, ready: 'form input' },
  { name: 'reset, without a link', path: () => '/reset', ready: '.state' },
  { name: 'verify', path: () => `/verify#${'0'.repeat(64)}`, ready: 'button' },
  { name: 'verify, without a link', path: () => '/verify', ready: '.state' },
  { name: 'register', path: () => '/register', ready: 'form input' },
  { name: 'help', path: () => '/help', ready: 'h2' },
  { name: 'terms', path: () => '/terms', ready: 'li a' },
  { name: 'a text of the terms', path: () => '/terms/privacy', ready: 'article h2' },
  { name: 'offline', path: () => '/offline', ready: 'h1' },
  { name: 'maintenance', path: () => '/maintenance', ready: 'h1' },
  { name: 'transfers, logged out', path: () => '/transfers', ready: '.state' },
  { name: 'my reservations, logged out', path: () => '/my/reservations', ready: '.state' },
  { name: 'my reservations', path: () => '/my/reservations', ready: '.state', fan: true },
  { name: 'my memberships', path: () => '/my/memberships', ready: '.state', fan: true },
  { name: 'my transfers', path: () => '/my/transfers', ready: '.state', fan: true },
  { name: 'my notifications', path: () => '/my/notifications', ready: '.state', fan: true },
  { name: 'my account', path: () => '/my/account', ready: 'form', fan: true },
  { name: 'identity, logged out', path: () => '/my/identity', ready: '.state' },
  { name: 'identity', path: () => '/my/identity', ready: 'ul', fan: true },
  // Other tests may have put a ticket up for sale.
  { name: 'transfers', path: () => '/transfers', ready: ':is(.state, ul > li)', fan: true },
];
