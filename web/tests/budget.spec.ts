import type { Page } from '@playwright/test';
import {
  enter,
  eventWith,
  expect,
  expectStill,
  firstArtist,
  firstNews,
  firstPost,
  holdTickets,
  logIn,
  otherFan,
  payNow,
  registerFan,
  test,
} from './fan';
import { Organiser } from './organiser';

const KB = 1024;

interface Loaded {
  all: number;
  scripts: number;
  preloadedFonts: number;
  hosts: Set<string>;
}

async function load(page: Page, path: string, ready?: string): Promise<Loaded> {
  const loaded: Loaded = { all: 0, scripts: 0, preloadedFonts: 0, hosts: new Set() };
  const sizes: Promise<void>[] = [];
  page.on('requestfinished', (request) => {
    const url = new URL(request.url());
    loaded.hosts.add(url.host);
    sizes.push(
      request.sizes().then(({ responseBodySize }) => {
        loaded.all += responseBodySize;
        if (request.resourceType() === 'script') loaded.scripts += responseBodySize;
        if (/\/(text|digits|display)\.[^/]+\.woff2$/.test(url.pathname))
          loaded.preloadedFonts += responseBodySize;
      }),
    );
  });
  await page.goto(path);
  // A page that follows a stream is never idle.
  if (ready) await expect(page.locator(ready)).toBeVisible();
  else await page.waitForLoadState('networkidle');
  await Promise.all(sizes);
  return loaded;
}

test.use({ viewport: { width: 360, height: 740 }, accountOf: 'weigher' });

/** Where a ticket of a sale of its own is held. */
async function held(page: Page): Promise<{ id: string; path: string }> {
  const organiser = await Organiser.logIn();
  const eventId = await organiser.createSale({ tickets: 4 });
  await organiser.dispose();
  const id = await holdTickets(page.request, eventId);
  return { id, path: `/checkout/reservation/${id}` };
}

async function bought(page: Page): Promise<{ id: string; orderId: string }> {
  const { id } = await held(page);
  await payNow(page.request, { reservationId: id });
  const { payments } = await (await page.request.get('/api/payments')).json();
  return { id, orderId: payments[0].orderId };
}

/** Pages and how many KB of script they may load at a first visit, compressed. */
const BUDGETS: {
  name: string;
  path: (page: Page) => Promise<string> | string;
  scriptKb: number;
  ready?: string;
  fan?: true;
}[] = [
  { name: 'home', path: () => '/', scriptKb: 70 },
  { name: 'events', path: () => '/events', scriptKb: 75 },
  { name: 'search', path: () => '/search', scriptKb: 75 },
  {
    name: 'event',
    path: async (page) => `/events/${await eventWith(page, 'on_sale')}`,
    scriptKb: 80,
  },
  { name: 'artist', path: async (page) => `/artists/${await firstArtist(page)}`, scriptKb: 75 },
  { name: 'login', path: () => '/login', scriptKb: 70 },
  { name: 'register', path: () => '/register', scriptKb: 75 },
  { name: 'help', path: () => '/help', scriptKb: 70 },
  {
    name: 'draw',
    path: async (page) => `/draws/${await eventWith(page, 'on_sale')}`,
    scriptKb: 75,
  },
  {
    name: 'seats',
    path: async (page) => `/events/${await eventWith(page, 'on_sale')}/seats`,
    scriptKb: 110,
    ready: '[role="application"]',
    fan: true,
  },
  {
    name: 'standing tickets',
    path: async (page) => `/events/${await eventWith(page, 'on_sale', 'standing')}/book`,
    scriptKb: 80,
    fan: true,
  },
  { name: 'checkout', path: async (page) => (await held(page)).path, scriptKb: 80, fan: true },
  {
    name: 'result',
    path: async (page) => {
      const { id, orderId } = await bought(page);
      return `/checkout/reservation/${id}/result?orderId=${orderId}`;
    },
    scriptKb: 75,
    ready: '.paid h1',
    fan: true,
  },
  {
    name: 'tickets',
    path: async (page) => `/my/reservations/${(await bought(page)).id}`,
    scriptKb: 90,
    fan: true,
  },
  { name: 'my reservations', path: () => '/my/reservations', scriptKb: 75, fan: true },
  { name: 'my memberships', path: () => '/my/memberships', scriptKb: 75, fan: true },
  { name: 'my transfers', path: () => '/my/transfers', scriptKb: 75, fan: true },
  { name: 'my notifications', path: () => '/my/notifications', scriptKb: 75, fan: true },
  { name: 'my account', path: () => '/my/account', scriptKb: 80, fan: true },
  { name: 'transfers', path: () => '/transfers', scriptKb: 75, fan: true },
  { name: 'artists', path: () => '/artists', scriptKb: 70 },
  { name: 'community', path: () => '/community', scriptKb: 75 },
  { name: 'post', path: async (page) => `/community/${await firstPost(page)}`, scriptKb: 75 },
  { name: 'writing', path: () => '/community/write', scriptKb: 75, fan: true },
  { name: 'news', path: () => '/news', scriptKb: 75 },
  { name: 'terms', path: () => '/terms', scriptKb: 70 },
];

test.describe('bytes', () => {
  // An event that is no lottery has no draw.
  test.use({ allowed: /404/ });
  for (const { name, path, scriptKb, ready, fan } of BUDGETS) {
    const check = async (page: Page, baseURL = '') => {
      const loaded = await load(page, await path(page), ready);
      const kb = (bytes: number) => (bytes / KB).toFixed(1);
      if (process.env.URR_PRINT_BYTES)
        console.log(`| ${name} | ${kb(loaded.scripts)} | ${scriptKb} | ${kb(loaded.all)} |`);
      expect(loaded.scripts).toBeGreaterThan(10 * KB);
      expect(loaded.scripts).toBeLessThanOrEqual(scriptKb * KB);
      expect(loaded.preloadedFonts).toBeLessThanOrEqual(100 * KB);
      expect([...loaded.hosts]).toEqual([new URL(baseURL).host]);
      await expectStill(page);
    };
    const title = `${name} loads at most ${scriptKb} KB of script, from our host, and does not jump`;
    if (fan) test(title, async ({ fanPage, baseURL }) => check(fanPage, baseURL));
    else test(title, async ({ page, baseURL }) => check(page, baseURL));
  }
});

const QUEUE_KB_MAX = 20;

test('the waiting page weighs at most 20 KB with everything', async ({ page }) => {
  const organiser = await Organiser.logIn();
  const eventId = await organiser.createSale({ tickets: 4, threshold: 1 });
  await organiser.dispose();
  const inside = await otherFan('inside');
  await enter(inside, eventId);
  await inside.dispose();
  await logIn(page, await registerFan('weighed'));
  const loaded = await load(page, `/queue/${eventId}`, '[data-state="wait"] [data-f="position"]');
  if (process.env.URR_PRINT_BYTES)
    console.log(
      `| waiting page | ${(loaded.scripts / KB).toFixed(1)} | | ${(loaded.all / KB).toFixed(1)} |`,
    );
  expect(loaded.scripts).toBeGreaterThan(KB);
  expect(loaded.all).toBeLessThanOrEqual(QUEUE_KB_MAX * KB);
  expect([...loaded.hosts]).toEqual([new URL(process.env.URR_URL ?? '').host]);
  await expectStill(page);
});

/** Pages whose data are asked for by the shell itself: they are there one round trip after it. */
const EARLY: { path: (page: Page) => Promise<string> | string; ready: string; api?: string }[] = [
  { path: () => '/', ready: 'article h3', api: '/api/events' },
  { path: () => '/events', ready: 'article h3', api: '/api/events' },
  { path: async (page) => `/events/${await eventWith(page, 'on_sale')}`, ready: 'h1' },
  { path: () => '/artists', ready: 'li h2', api: '/api/artists' },
  { path: async (page) => `/artists/${await firstArtist(page)}`, ready: 'h1' },
  { path: () => '/news', ready: 'li h2', api: '/api/news' },
  { path: async (page) => `/news/${await firstNews(page)}`, ready: 'h1' },
];

test('data are asked for once, before the scripts have run', async ({ page }) => {
  for (const { path, ready, api } of EARLY) {
    const address = await path(page);
    const asked: string[] = [];
    const note = (request: { url(): string }) => {
      const { pathname, search } = new URL(request.url());
      if (pathname === (api ?? `/api${address}`)) asked.push(pathname + search);
    };
    await page.goto('about:blank');
    page.on('request', note);
    await page.goto(address);
    await expect(page.locator(`main ${ready}`).first()).toBeVisible();
    page.off('request', note);
    expect(asked, address).toEqual([...new Set(asked)]);
    expect(asked.length, address).toBeGreaterThan(0);
    // Every early answer was taken by the page.
    const left = await page.evaluate(() => window.urrEarly && Object.keys(window.urrEarly));
    expect(left, address).toEqual([]);
  }
});
