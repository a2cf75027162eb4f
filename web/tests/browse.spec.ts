import { changeAnswer, eventWith, expect, expectAccessible, firstArtist, test } from './fan';
import { Organiser, unique } from './organiser';

test('initial consonants find an event while typing', async ({ page }) => {
  await page.goto('/search');
  await page.getByRole('searchbox').pressSequentially('ㅎㄱ', { delay: 30 });
  await expect(page.getByRole('link', { name: /한강/ }).first()).toBeVisible();
  await expect(page).toHaveURL(/q=%E3%85%8E%E3%84%B1$/);
});

test('artists and venues of what was found are suggested', async ({ page }) => {
  await page.goto('/search');
  await page.getByRole('searchbox').fill('한강');
  const suggestions = page.getByRole('list', { name: '추천 검색어' });
  await expect(suggestions.getByRole('listitem').first()).toBeVisible();
  await expectAccessible(page);
  const venue = suggestions.getByRole('button').first();
  const name = (await venue.innerText()).trim();
  await venue.click();
  await expect(page.getByRole('searchbox')).toHaveValue(name);
  await expect(page.locator('article').first()).toContainText(name);
  await suggestions.getByRole('link').first().click();
  await expect(page).toHaveURL(/\/artists\/[0-9a-f-]{36}$/);
});

test('an event that was just added is on the home page', async ({ page }) => {
  const organiser = await Organiser.logIn();
  const title = unique('갓 올라온 공연');
  await organiser.createSale({ title, opensInSeconds: 7_200 });
  await organiser.dispose();
  await page.goto('/');
  const newest = page.locator('section', {
    has: page.getByRole('heading', { name: '새로 올라온 공연' }),
  });
  await expect(newest.locator('article')).toHaveCount(4);
  // Other tests add events at the same time.
  await expect(
    newest.getByText(/갓 올라온 공연|작은 공연|알림 공연|자판만으로/).first(),
  ).toBeVisible();
});

test('an event has a sketch of its hall, from the stage to the back', async ({ page }) => {
  await page.goto(`/events/${await eventWith(page, 'on_sale')}`);
  const sketch = page.getByRole('img', { name: /무대에서 가까운 순서로/ });
  await expect(sketch).toBeVisible();
  const { event } = await (
    await page.request.get(`/api/events/${page.url().split('/').at(-1)}`)
  ).json();
  for (const grade of Object.keys(event.prices))
    await expect(sketch.locator('text', { hasText: grade }).first()).toBeVisible();
});

test('the page of an artist has news and posts', async ({ page }) => {
  const id = await firstArtist(page);
  await page.goto(`/artists/${id}`);
  const posts = page.locator('section', {
    has: page.getByRole('heading', { name: '팬들의 이야기' }),
  });
  await expect(posts.getByRole('heading', { level: 3 }).first()).toBeVisible();
  await posts.getByRole('link', { name: '모두 보기' }).click();
  await expect(page).toHaveURL(`/community?artist=${id}`);
  await page.goBack();
  const news = page.locator('section', {
    has: page.getByRole('heading', { name: '소식', exact: true }),
  });
  await news.getByRole('heading', { level: 3 }).first().getByRole('link').click();
  await expect(page).toHaveURL(/\/news\/[0-9a-f-]{36}$/);
});

test('the table of tiers shows the figures of the server', async ({ page }) => {
  const path = `/artists/${await firstArtist(page)}`;
  const gold = page.getByRole('row').filter({ hasText: '골드' });
  await page.goto(path);
  for (const text of ['500', '1시간', '2,000원', '5%']) await expect(gold).toContainText(text);

  // The control: the page has no figures of its own.
  await page.route('**/api/memberships/tiers', (route) =>
    changeAnswer<{ tiers: { tier: string }[] }>(route, ({ tiers }) => {
      const other = {
        pointsFrom: 777,
        preSaleDelaySeconds: 7 * 3_600,
        bookingFeeSurcharge: 4_321,
        transferFeePercent: 9,
      };
      return { tiers: tiers.map((one) => (one.tier === 'gold' ? { ...one, ...other } : one)) };
    }),
  );
  await page.reload();
  for (const text of ['777', '7시간', '4,321원', '9%']) await expect(gold).toContainText(text);
});

test('a link to an event carries its title, description and picture', async ({ request, page }) => {
  const id = await eventWith(page, 'on_sale');
  const { event } = await (await request.get(`/api/events/${id}`)).json();
  const shell = await (await request.get(`/events/${id}`)).text();
  expect(shell).toContain(`<meta property="og:title" content="${event.title}`);
  expect(shell).toMatch(/<meta property="og:description" content="[^"]{10,}"/);
  if (event.posterImageUrl) expect(shell).toMatch(/<meta property="og:image" content="http/);
});

test('no page scrolls sideways when it is enlarged four times', async ({ page }) => {
  await page.setViewportSize({ width: 320, height: 400 });
  const event = await eventWith(page, 'on_sale');
  for (const path of [
    '/',
    '/events',
    `/events/${event}`,
    '/register',
    '/help',
    `/queue/${event}`,
  ]) {
    await page.goto(path);
    await expect(page.locator('main h1').filter({ visible: true }).first()).toBeVisible();
    await page.waitForLoadState('networkidle').catch(() => undefined);
    const [content, window] = await page.evaluate(() => [
      document.documentElement.scrollWidth,
      document.documentElement.clientWidth,
    ]);
    expect(content, path).toBeLessThanOrEqual(window ?? 0);
  }
});

test('filters are in the address and survive reload and back', async ({ page }) => {
  await page.goto('/events');
  await page.getByRole('link', { name: '오픈 예정' }).click();
  await expect(page).toHaveURL(/status=upcoming/);
  await expect(page.locator('article').first()).toContainText('오픈 예정');
  await page.reload();
  await expect(page.locator('[aria-current="true"]').first()).toHaveText('오픈 예정');
  await page.locator('article a').first().click();
  await expect(page).toHaveURL(/\/events\/[0-9a-f-]{36}$/);
  await page.goBack();
  await expect(page).toHaveURL(/status=upcoming/);
  await expect(page.locator('article h3').first()).toBeVisible();
});

test.describe('before the scripts have run', () => {
  // Scripts that are loaded beforehand are not wanted then.
  test.use({ javaScriptEnabled: false, allowed: /\.js csp/ });

  test('the filters are links to what they say', async ({ page }) => {
    for (const [path, filter, address] of [
      ['/events', '오픈 예정', '/events?status=upcoming'],
      ['/events', '달력', '/events?view=calendar'],
    ] as const) {
      await page.goto(path);
      await page.locator('main').getByRole('link', { name: filter, exact: true }).click();
      await expect(page).toHaveURL(address);
    }
  });
});

test('what was added last comes first, if asked for', async ({ page }) => {
  const organiser = await Organiser.logIn();
  const title = unique('막 올린 공연');
  await organiser.createSale({ title, tickets: 10 });
  await organiser.dispose();
  await page.goto('/events');
  await page.getByLabel('정렬').selectOption('newest');
  await expect(page).toHaveURL(/sort=newest/);
  // Other tests add events at the same time.
  const titles = page.locator('article h3');
  await expect
    .poll(async () => (await titles.allInnerTexts()).slice(0, 6).map((one) => one.trim()))
    .toContain(title);
});

test('an event names who performs', async ({ page }) => {
  const organiser = await Organiser.logIn();
  const casting = [{ name: '김우르', role: '모차르트' }, { name: '합창단 르르' }];
  const id = await organiser.createSale({ tickets: 10, event: { casting } });
  await organiser.dispose();
  await page.goto(`/events/${id}`);
  const cast = page.locator('section', { has: page.getByRole('heading', { name: '출연' }) });
  await expect(cast.getByRole('listitem')).toHaveText(['김우르 모차르트', '합창단 르르']);
  await expectAccessible(page);
});

test('the calendar moves by months', async ({ page }) => {
  await page.goto('/events?view=calendar&month=2026-12');
  await expect(page.getByRole('heading', { name: '2026년 12월' })).toBeVisible();
  await page.getByRole('link', { name: '다음 달' }).click();
  await expect(page.getByRole('heading', { name: '2027년 1월' })).toBeVisible();
});

test('the skip link leads past the header', async ({ page }) => {
  await page.goto('/help');
  await page.keyboard.press('Tab');
  await expect(page.getByRole('link', { name: '본문으로 건너뛰기' })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.locator('main')).toBeFocused();
});

test('language and theme stay chosen', async ({ page }) => {
  await page.goto('/help');
  await page.getByLabel('화면 테마').selectOption('dark');
  await page.getByLabel('언어').selectOption('en');
  await expect(page.getByRole('heading', { name: 'Help', level: 1 })).toBeVisible();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await page.goto('/artists');
  await expect(page.getByRole('heading', { name: 'Artists', level: 1 })).toBeVisible();
});

test('a countdown follows the server, not the clock of the device', async ({ page }) => {
  await page.addInitScript(() => {
    const now = Date.now.bind(Date);
    Date.now = () => now() + 3_600_000;
  });
  const id = await eventWith(page, 'upcoming');
  const { event } = await (await page.request.get(`/api/events/${id}`)).json();
  await page.goto(`/events/${id}`);
  await expect(page.getByRole('timer').first()).toBeVisible();
  await expect(async () => {
    const shown = await page.locator('[role="timer"] b').allTextContents();
    const [seconds = 0, minutes = 0, hours = 0, days = 0] = shown.map(Number).reverse();
    const left = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
    expect(Math.abs(left - (Date.parse(event.saleStartsAt) - Date.now()) / 1000)).toBeLessThan(5);
  }).toPass();
});

test('the opening of a sale can be put into a calendar', async ({ page }) => {
  // The one that opens last: its waiting room cannot be entered yet.
  const { events } = await (await page.request.get('/api/events?status=upcoming')).json();
  await page.goto(`/events/${events.at(-1).id}`);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: '캘린더에 추가' }).click();
  expect((await download).suggestedFilename()).toBe('urr-sale.ics');
});
