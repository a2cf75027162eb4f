import type { Page } from '@playwright/test';
import {
  changeAnswer,
  eventWith,
  expect,
  expectAccessible,
  firstArtist,
  firstNews,
  firstPost,
  test,
} from './fan';

const BUSY = {
  status: 503,
  json: { error: '바쁩니다.', code: 'BUSY', traceId: '4bf92f3577b34da6a3ce929d0e0e4736' },
};
const NO_ID = '01a1e1a8-0000-7000-8000-000000000000';
const EMPTY_PAGE = { page: 1, limit: 20, total: 0, totalPages: 0 };

test.describe('a refusal', () => {
  test.use({ allowed: /503/ });

  test('is told in a sentence with its trace, and can be retried', async ({ page }) => {
    await page.route('**/api/events?*', (route) => route.fulfill(BUSY));
    await page.goto('/events');
    await expect(page.getByRole('alert')).toContainText('접속이 많습니다');
    await page.getByText('자세히').click();
    await expect(page.getByText(BUSY.json.traceId)).toBeVisible();

    await page.unroute('**/api/events?*');
    await page.getByRole('button', { name: '다시 시도' }).click();
    await expect(page.locator('article h3').first()).toBeVisible();
  });

  test('of one list leaves the rest of the home page usable', async ({ page }) => {
    await page.route('**/api/events?status=on_sale*', (route) => route.fulfill(BUSY));
    await page.goto('/');
    await expect(page.getByRole('alert').first()).toBeVisible();
    await expect(page.locator('.board h3').first()).toBeVisible();
  });
});

/** Pages and the request that they cannot do without. */
const NEEDS: {
  name: string;
  path: (page: Page) => Promise<string> | string;
  api: string | RegExp;
  fan?: true;
}[] = [
  { name: 'events', path: () => '/events', api: '**/api/events?*' },
  { name: 'search', path: () => '/search?q=ㅎㄱ', api: '**/api/events?*' },
  {
    name: 'an event',
    path: async (page) => `/events/${await eventWith(page, 'on_sale')}`,
    api: '**/api/events/*',
  },
  { name: 'artists', path: () => '/artists', api: '**/api/artists?*' },
  {
    name: 'an artist',
    path: async (page) => `/artists/${await firstArtist(page)}`,
    api: '**/api/artists/*',
  },
  {
    name: 'seats',
    path: async (page) => `/events/${await eventWith(page, 'on_sale')}/seats`,
    api: '**/api/queue/check/*',
    fan: true,
  },
  {
    name: 'standing tickets',
    path: async (page) => `/events/${await eventWith(page, 'on_sale', 'standing')}/book`,
    api: '**/api/queue/check/*',
    fan: true,
  },
  {
    name: 'a checkout',
    path: () => `/checkout/reservation/${NO_ID}`,
    api: '**/api/reservations/*',
    fan: true,
  },
  {
    name: 'a reservation',
    path: () => `/my/reservations/${NO_ID}`,
    api: '**/api/reservations/*',
    fan: true,
  },
  {
    name: 'my reservations',
    path: () => '/my/reservations',
    api: '**/api/reservations?*',
    fan: true,
  },
  {
    name: 'my memberships',
    path: () => '/my/memberships',
    api: '**/api/memberships/my*',
    fan: true,
  },
  { name: 'my transfers', path: () => '/my/transfers', api: '**/api/transfers/my*', fan: true },
  { name: 'transfers', path: () => '/transfers', api: '**/api/transfers?*', fan: true },
  {
    name: 'my notifications',
    path: () => '/my/notifications',
    api: '**/api/notifications*',
    fan: true,
  },
  { name: 'community', path: () => '/community', api: /\/api\/community\/posts(\?|$)/ },
  { name: 'news', path: () => '/news', api: /\/api\/news(\?|$)/ },
  {
    name: 'a post',
    path: async (page) => `/community/${await firstPost(page)}`,
    api: /\/api\/community\/posts\/[^/]+$/,
  },
  {
    name: 'one of the news',
    path: async (page) => `/news/${await firstNews(page)}`,
    api: '**/api/news/*',
  },
  { name: 'terms', path: () => '/terms', api: '**/api/auth/terms' },
  { name: 'a text of the terms', path: () => '/terms/service', api: '**/api/auth/terms/*' },
  { name: 'a draw', path: () => `/draws/${NO_ID}`, api: '**/api/queue/draw/*' },
  { name: 'signing up', path: () => '/register', api: '**/api/auth/terms' },
  {
    name: 'editing a post',
    path: async (page) => `/community/${await firstPost(page)}/edit`,
    api: /\/api\/community\/posts\/[^/]+$/,
    fan: true,
  },
  {
    name: 'the checkout of a membership',
    path: () => `/checkout/membership/${NO_ID}`,
    api: '**/api/memberships/my*',
    fan: true,
  },
  {
    name: 'the checkout of a transfer',
    path: () => `/checkout/transfer/${NO_ID}`,
    api: '**/api/transfers/*',
    fan: true,
  },
  { name: 'my account', path: () => '/my/account', api: '**/api/auth/me', fan: true },
  { name: 'identity', path: () => '/my/identity', api: '**/api/auth/me', fan: true },
];

test.describe('every page', () => {
  // The first answer is refused; what is asked for then may not exist.
  test.use({ allowed: /503|404/, serviceWorkers: 'block' });

  for (const { name, path, api, fan } of NEEDS) {
    const check = async (page: Page) => {
      let release = () => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      await page.route(api, async (route) => {
        await held;
        await route.fulfill(BUSY);
      });
      await page.goto(await path(page));
      await expect(page.locator('main .skeleton').first()).toBeVisible();
      await expectAccessible(page);
      release();
      const alert = page.locator('main').getByRole('alert').first();
      await expect(alert).toContainText('접속이 많습니다');
      await expectAccessible(page);
      await page.unroute(api);
      await page.getByRole('button', { name: '다시 시도' }).first().click();
      await expect(page.getByText('접속이 많습니다')).toHaveCount(0);
    };
    const title = `${name}: loads, is refused, and is tried again`;
    if (fan) test(title, async ({ fanPage }) => check(fanPage));
    else test(title, async ({ page }) => check(page));
  }
});

/** Pages that show nothing without a login. */
const PRIVATE = [
  `/events/${NO_ID}/seats`,
  `/events/${NO_ID}/book`,
  `/checkout/reservation/${NO_ID}`,
  `/checkout/membership/${NO_ID}`,
  `/checkout/transfer/${NO_ID}`,
  `/checkout/reservation/${NO_ID}/result?orderId=ORD_1`,
  '/my/reservations',
  `/my/reservations/${NO_ID}`,
  '/my/memberships',
  '/my/transfers',
  '/my/notifications',
  '/my/account',
  '/my/identity',
  '/transfers',
  '/community/write',
  `/community/${NO_ID}/edit`,
];

test('without a login each page of one’s own asks for it, and comes back', async ({ page }) => {
  for (const path of PRIVATE) {
    await page.goto(path);
    await expect(page.getByRole('heading', { name: '로그인이 필요합니다' }), path).toBeVisible();
    const link = page.locator('main').getByRole('link', { name: '로그인' });
    await expect(link).toHaveAttribute('href', `/login?return=${encodeURIComponent(path)}`);
  }
  await expectAccessible(page);
});

/** Lists that may be empty, and what they say then. */
const EMPTY: { path: string; api: string | RegExp; json: object; said: string; fan?: true }[] = [
  {
    path: '/',
    api: '**/api/events?*',
    json: { events: [], pagination: EMPTY_PAGE },
    said: '지금 예매 중인 공연이 없습니다',
  },
  {
    path: '/events?view=calendar&month=2026-12',
    api: '**/api/events?*',
    json: { events: [], pagination: EMPTY_PAGE },
    said: '이 달에는 공연이 없습니다',
  },
  {
    path: '/artists',
    api: '**/api/artists?*',
    json: { artists: [], pagination: EMPTY_PAGE },
    said: '등록된 아티스트가 없습니다',
  },
  {
    path: '/news',
    api: /\/api\/news(\?|$)/,
    json: { pinned: [], news: [], nextCursor: null },
    said: '아직 소식이 없습니다',
  },
  {
    path: '/transfers',
    api: '**/api/transfers?*',
    json: { transfers: [], pagination: EMPTY_PAGE },
    said: '지금 양도 중인 티켓이 없습니다',
    fan: true,
  },
  {
    path: '/community/write',
    api: '**/api/artists?*',
    json: { artists: [], pagination: EMPTY_PAGE },
    said: '아직 등록된 아티스트가 없습니다',
    fan: true,
  },
];

test.describe('a list without anything', () => {
  test.use({ serviceWorkers: 'block' });

  for (const { path, api, json, said, fan } of EMPTY) {
    const check = async (page: Page) => {
      await page.route(api, (route) => route.fulfill({ json }));
      await page.goto(path);
      await expect(page.locator('main').getByText(said).first()).toBeVisible();
      await expectAccessible(page);
    };
    const title = `is told: ${path}`;
    if (fan) test(title, async ({ fanPage }) => check(fanPage));
    else test(title, async ({ page }) => check(page));
  }
});

test.describe('what a form needs', () => {
  // The reservation of the result does not exist.
  test.use({ allowed: /503|404/, serviceWorkers: 'block' });

  test('a post waits for the list of artists, and says when it does not come', async ({
    fanPage: page,
  }) => {
    let isDown = false;
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    await page.route('**/api/artists?*', async (route) => {
      await held;
      if (isDown) await route.fulfill(BUSY);
      else await route.continue();
    });
    await page.goto('/community/write');
    await page.getByLabel('제목').fill('어제 공연');
    await page.getByLabel('내용').fill('좋았어요.');
    // Nobody knows yet whose board it is for.
    await expect(page.getByRole('button', { name: '등록' })).toBeDisabled();
    release();
    await expect(page.getByRole('button', { name: '등록' })).toBeEnabled();
    isDown = true;
    await page.reload();
    await expect(page.locator('main').getByRole('alert')).toContainText('접속이 많습니다');
    isDown = false;
    await page.getByRole('button', { name: '다시 시도' }).click();
    await expect(page.getByLabel('제목')).toBeVisible();
  });

  test('a result is not called open before anything is known of it', async ({ fanPage: page }) => {
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    await page.route('**/api/payments/order/*', async (route) => {
      await held;
      await route.fulfill(BUSY);
    });
    await page.goto(`/checkout/reservation/${NO_ID}/result?orderId=ORD_1`);
    await expect(page.locator('main .skeleton').first()).toBeVisible();
    await expectAccessible(page);
    await expect(page.getByRole('heading', { name: '확인하고 있습니다' })).toHaveCount(0);
    // An answer that does not come is asked for again; meanwhile the page says what it does.
    release();
    await expect(page.getByRole('heading', { name: '확인하고 있습니다' })).toBeVisible();
  });
});

test.describe('an answer that never comes', () => {
  test.use({ serviceWorkers: 'block' });

  test('is asked for again', async ({ page }) => {
    await page.clock.install();
    let asked = 0;
    await page.route('**/api/artists?*', async (route) => {
      asked += 1;
      // The first question, which the shell asks, is never answered.
      if (asked > 1) await route.continue();
    });
    await page.goto('/artists', { waitUntil: 'commit' });
    await expect(page.locator('main .skeleton').first()).toBeVisible();
    await expect.poll(() => page.evaluate(() => window.urrEarly)).toEqual({});
    expect(asked).toBe(1);
    await page.clock.runFor(16_000);
    await expect(page.locator('main li h2').first()).toBeVisible();
    expect(asked).toBe(2);
  });
});

test('a list keeps its place while it loads', async ({ page }) => {
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route('**/api/events?*', async (route) => {
    await held;
    await route.continue();
  });
  await page.goto('/events');
  await expect(page.locator('[aria-busy="true"] .skeleton').first()).toBeVisible();
  release();
  await expect(page.locator('article h3').first()).toBeVisible();
});

test('an empty list says what to do', async ({ page }) => {
  await page.route('**/api/events?*', (route) =>
    route.fulfill({ json: { events: [], pagination: EMPTY_PAGE } }),
  );
  await page.goto('/events?status=upcoming');
  await expect(page.getByRole('heading', { name: '조건에 맞는 공연이 없습니다' })).toBeVisible();
  await expect(page.getByRole('link', { name: '조건 지우기' })).toBeVisible();
  await expectAccessible(page);
});

test('an empty board offers to write, a search in it to begin again', async ({ page }) => {
  await page.route('**/api/community/posts?*', (route) =>
    route.fulfill({ json: { pinned: [], posts: [], nextCursor: null } }),
  );
  await page.route('**/api/community/posts', (route) =>
    route.fulfill({ json: { pinned: [], posts: [], nextCursor: null } }),
  );
  await page.goto('/community');
  await expect(page.locator('.state').getByRole('link', { name: '글쓰기' })).toBeVisible();
  await expectAccessible(page);
  await page.goto('/community?q=없는말');
  await page.getByRole('button', { name: '검색 지우기' }).click();
  await expect(page).toHaveURL(/\/community$/);
});

test('a search without result says so', async ({ page }) => {
  await page.goto('/search');
  await page.getByRole('searchbox').fill('없는공연없는공연');
  await expect(page.getByText('‘없는공연없는공연’에 맞는 공연이 없습니다')).toBeVisible();
  await expectAccessible(page);
});

test.describe('what is not there', () => {
  test.use({ allowed: /404|Not found/ });

  test('an unknown event', async ({ page }) => {
    await page.goto('/events/01a1e1a8-0000-7000-8000-000000000000');
    await expect(page.getByRole('heading', { name: '없는 공연입니다' })).toBeVisible();
    await expectAccessible(page);
  });

  test('an unknown page has the status 404 and leads home', async ({ page }) => {
    const response = await page.goto('/no-such-page');
    expect(response?.status()).toBe(404);
    await expect(page.getByRole('heading', { name: '없는 페이지' })).toBeVisible();
    await expectAccessible(page);
    await page.getByRole('link', { name: '홈으로' }).click();
    await expect(page.locator('.hero')).toBeVisible();
  });
});

test('W-11 an event offers only what the server would accept', async ({ page }) => {
  await page.goto(`/events/${await eventWith(page, 'on_sale')}`);
  await expect(page.getByRole('link', { name: /예매하기|대기열 입장/ })).toBeVisible();

  const booking = page
    .locator('main')
    .getByRole('link', { name: /예매하기|대기열 입장|대기실 입장/ });
  await page.goto(`/events/${await eventWith(page, 'cancelled')}`);
  await expect(page.getByRole('alert')).toContainText('취소된 공연');
  await expect(booking).toHaveCount(0);

  await page.goto(`/events/${await eventWith(page, 'ended')}`);
  await expect(page.getByText('예매가 끝났습니다')).toBeVisible();
  await expect(booking).toHaveCount(0);
});

test('a sold-out event says so at once', async ({ page }) => {
  const id = await eventWith(page, 'on_sale');
  await page.route('**/api/queue/crowd/**', (route) =>
    changeAnswer(route, (crowd) => ({ ...crowd, soldOut: true })),
  );
  await page.goto(`/events/${id}`);
  await expect(page.locator('.panel').getByText('매진')).toBeVisible();
  await expect(page.getByRole('link', { name: '양도 티켓 보기' })).toBeVisible();
});
