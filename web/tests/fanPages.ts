/** The pages of fans, for tests that walk all of them. */
import type { Page } from '@playwright/test';
import {
  enter,
  eventWith,
  expect,
  firstArtist,
  firstNews,
  firstPost,
  holdSeats,
  holdTickets,
  join,
  otherFan,
  payNow,
  SAME_ORIGIN,
} from './fan';
import { Organiser } from './organiser';

export interface FanPage {
  readonly name: string;
  readonly path: (page: Page) => Promise<string> | string;
  /** What is visible once it has loaded, below `main`. */
  readonly ready: string;
  /** Somebody is logged in. */
  readonly fan?: true;
  /** A button that is pressed first: it opens a dialog or a list. */
  readonly press?: string | undefined;
}

/** Pages that need no purchase. */
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

/** Pages of a fan who has something of everything. */
export async function pagesWithContent(page: Page): Promise<FanPage[]> {
  const { request: api } = page;
  const organiser = await Organiser.logIn();
  const artist = await organiser.createArtist();
  const seated = await organiser.createSale({
    grid: { rows: 2, seatsPerRow: 6 },
    artistId: artist.id,
  });
  const standing = await organiser.createSale({ tickets: 50 });
  const full = await organiser.createSale({ tickets: 50, threshold: 1 });
  const draw = await organiser.createSale({
    tickets: 50,
    lottery: { gatherSeconds: 1_800, opensInSeconds: 3_600 },
  });
  await organiser.dispose();

  const other = await otherFan('inside');
  await enter(other, full);
  await other.dispose();
  await join(api, artist.id);
  const bought = await holdSeats(api, seated, [0, 1, 2]);
  await payNow(api, { reservationId: bought });
  const listed = await holdSeats(api, seated, [6]);
  await payNow(api, { reservationId: listed });
  await send(api.post('/api/transfers', { data: { reservationId: listed }, headers: SAME_ORIGIN }));
  const pending = await holdTickets(api, standing);
  const { membershipId } = await send(
    api.post('/api/memberships/subscribe', {
      data: { artistId: await firstArtist(page) },
      headers: SAME_ORIGIN,
    }),
  );
  const { payments } = await send(api.get('/api/payments'));
  const upcoming = await eventWith(page, 'upcoming');
  await send(api.put(`/api/alerts/events/${upcoming}/sale`, { headers: SAME_ORIGIN }));
  const { post } = await send(
    api.post('/api/community/posts', {
      data: { artistId: artist.id, title: '어제 공연 후기', content: '좋았어요. Wonderful!' },
      headers: { ...SAME_ORIGIN, 'idempotency-key': crypto.randomUUID() },
    }),
  );
  const paths: Record<string, [path: string, ready: string, press?: string]> = {
    'the room of a full event': [`/queue/${full}`, 'h1'],
    'a seat map': [`/events/${seated}/seats`, '[role="application"]'],
    'a seat list': [`/events/${seated}/seats`, '[role="application"]', '.views button:last-child'],
    'best seats': [`/events/${seated}/seats`, '[role="application"]', '.tools > .button'],
    'standing tickets': [`/events/${standing}/book`, 'ul h2'],
    'a checkout': [`/checkout/reservation/${pending}`, 'form'],
    'the checkout of a membership': [`/checkout/membership/${membershipId}`, 'form'],
    'a result': [`/checkout/reservation/${bought}/result?orderId=${payments[0].orderId}`, 'h1'],
    'a draw': [`/draws/${draw}`, 'h1'],
    'bought tickets': [`/my/reservations/${bought}`, 'img, svg'],
    'cancelling tickets': [`/my/reservations/${bought}`, 'img, svg', '.actions .danger'],
    'a ticket for sale': [`/my/reservations/${listed}`, '.notice'],
    'a list of reservations': ['/my/reservations', 'li'],
    'a list of memberships': ['/my/memberships', 'li'],
    'a list of transfers': ['/my/transfers', 'li'],
    'a list of alerts': ['/my/notifications', 'li'],
    'a post of one’s own': [`/community/${post.id}`, 'article h1'],
    'editing a post': [`/community/${post.id}/edit`, 'form textarea'],
    'the page of a joined artist': [`/artists/${artist.id}`, '.panel'],
  };
  return Object.entries(paths).map(([name, [path, ready, press]]) => ({
    name,
    path: () => path,
    ready,
    press,
  }));
}

async function send(sent: Promise<import('@playwright/test').APIResponse>) {
  const response = await sent;
  expect(response.ok(), `${response.url()}: ${await response.text()}`).toBe(true);
  return response.json().catch(() => null);
}
