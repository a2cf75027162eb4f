/**
 * Forty texts that become scripts where a page forgets to treat them as texts, in everything that
 * people write, on the pages that show it: nothing runs, nothing is requested, and the text is
 * there as it was written.
 */
import { type APIRequestContext, expect, type Page, request, test } from '@playwright/test';
import { chooseCard, holdSeats, logInAt, registerFan, SAME_ORIGIN, watch } from './fan';
import { type RunningProgram, runProgram } from './program';

/** At most 50 characters, as a section's name may have. Each would set `xss`. */
const PAYLOADS = [
  '<script>xss=1</script>',
  '</script><script>xss=1</script>',
  '</title><script>xss=1</script>',
  '</textarea><script>xss=1</script>',
  '</style><script>xss=1</script>',
  '--><script>xss=1</script>',
  ']]><script>xss=1</script>',
  '<ScRiPt>xss=1</sCrIpT>',
  '<img src=x onerror=xss=1>',
  '"><img src=x onerror=xss=1>',
  "'><img src=x onerror=xss=1>",
  '`><img src=x onerror=xss=1>',
  '<img/src=x/onerror=xss=1>',
  '<img src=x onerror="xss=1" id=xss>',
  '<IMG SRC=x ONERROR=xss=1>',
  '<svg onload=xss=1>',
  '<svg/onload=xss=1>',
  '<svg><script>xss=1</script></svg>',
  '<svg><animate onbegin=xss=1 attributeName=x>',
  '<body onload=xss=1>',
  '<iframe srcdoc="<script>parent.xss=1</script>">',
  '<iframe src="javascript:parent.xss=1">',
  '<object data="javascript:xss=1">',
  '<embed src="javascript:xss=1">',
  '<a href="javascript:xss=1" id=xss>x</a>',
  '<details open ontoggle=xss=1>x</details>',
  '<input autofocus onfocus=xss=1>',
  '<video><source onerror=xss=1></video>',
  '<audio src=x onerror=xss=1>',
  '<math><mtext><img src=x onerror=xss=1>',
  '" onmouseover=xss=1 x="',
  "' onfocus='xss=1' autofocus='",
  '" autofocus onfocus=xss=1 "',
  'javascript:xss=1//',
  '${xss=1}',
  '{{constructor.constructor("xss=1")()}}',
  '{@html "<img src=x onerror=xss=1>"}',
  '&lt;img src=x onerror=xss=1&gt;',
  '&#60;script&#62;xss=1&#60;/script&#62;',
  '\\u003cscript\\u003exss=1\\u003c/script\\u003e',
] as const;

const ALL = PAYLOADS.join('\n');
const FIRST = PAYLOADS[9];

interface World {
  readonly program: RunningProgram;
  readonly fan: { readonly email: string; readonly password: string; readonly name: string };
  readonly ids: {
    readonly seated: string;
    readonly standing: string;
    readonly artist: string;
    readonly post: string;
    readonly news: string;
    readonly hall: string;
    readonly reservation: string;
    readonly held: string;
  };
}

let world: World;

test.describe.configure({ mode: 'serial' });
test.beforeAll(async () => {
  test.setTimeout(300_000);
  expect(new Set(PAYLOADS).size).toBe(40);
  expect(Math.max(...PAYLOADS.map((one) => one.length))).toBeLessThanOrEqual(50);
  const program = await runProgram({
    URR_DEMO_SEED: 'false',
    URR_COMMUNITY_POSTS_PER_HOUR_MAX: '100',
  });
  try {
    world = await makeWorld(program);
  } catch (error) {
    await program.stop();
    throw error;
  }
});
test.afterAll(() => world?.program.stop());

async function answer(sent: Promise<import('@playwright/test').APIResponse>) {
  const response = await sent;
  const text = await response.text();
  expect(response.ok(), `${response.url()}: ${response.status()} ${text}`).toBe(true);
  return text === '' ? null : JSON.parse(text);
}

async function apiOf(program: RunningProgram, login: object): Promise<APIRequestContext> {
  const api = await request.newContext({ baseURL: program.url, extraHTTPHeaders: SAME_ORIGIN });
  await answer(api.post('/api/auth/login', { data: login }));
  return api;
}

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

async function makeWorld(program: RunningProgram): Promise<World> {
  const admin = await apiOf(program, program.admin);
  const artists: string[] = [];
  for (const name of PAYLOADS) {
    const data = { name, description: ALL, membershipPrice: 10_000 };
    artists.push((await answer(admin.post('/api/admin/artists', { data }))).artist.id);
  }
  const hall = await makeHall(admin);
  const times = { saleStartsAt: inDays(-1), saleEndsAt: inDays(30), startsAt: inDays(40) };
  const texts = { description: ALL, notices: ALL, artistId: artists[9] };
  const seated = await answer(
    admin.post('/api/admin/events', {
      data: {
        title: FIRST,
        ...times,
        ...texts,
        hallId: hall.id,
        prices: Object.fromEntries(PAYLOADS.map((grade) => [grade, 50_000])),
      },
    }),
  );
  const standing: string[] = [];
  for (const name of PAYLOADS) {
    const ticketTypes = [{ name, price: 10_000, total: 50, description: name }];
    const data = { title: name, ...times, ...texts, venueId: hall.venueId, ticketTypes };
    standing.push((await answer(admin.post('/api/admin/events', { data }))).event.id);
  }
  const news: string[] = [];
  for (const title of PAYLOADS) {
    const data = { title, content: ALL, artistId: artists[9] };
    const headers = { 'idempotency-key': crypto.randomUUID() };
    news.push((await answer(admin.post('/api/news', { data, headers }))).news?.id ?? '');
  }
  const seatedId = seated.event.id as string;
  await expect
    .poll(async () => (await answer(admin.get(`/api/events/${seatedId}`))).event.inventoryReady, {
      timeout: 60_000,
    })
    .toBe(true);
  const { fan, post, reservation, held } = await makeFan(program, artists[9]!, seatedId);
  const newsList = await answer(admin.get('/api/news?limit=1'));
  const ids = {
    seated: seatedId,
    standing: standing[9]!,
    artist: artists[9]!,
    post,
    news: news[9] || newsList.news[0].id,
    hall: hall.id,
    reservation,
    held,
  };
  await admin.dispose();
  return { program, fan, ids };
}

async function makeHall(admin: APIRequestContext): Promise<{ id: string; venueId: string }> {
  const venues: string[] = [];
  for (const name of PAYLOADS.slice(0, 15)) {
    const data = { name, address: name, description: ALL };
    venues.push((await answer(admin.post('/api/admin/venues', { data }))).venue.id);
  }
  const sections = PAYLOADS.map((name, index) => ({
    name,
    grade: name,
    x: ((index % 8) - 3.5) * 600,
    y: 600 + Math.floor(index / 8) * 400,
    rows: [{ label: name, seats: 8 }],
  }));
  const venueId = venues[9]!;
  const data = { name: FIRST, description: ALL, layout: { sections } };
  const { hall } = await answer(admin.post(`/api/admin/venues/${venueId}/halls`, { data }));
  return { id: hall.id, venueId };
}

/** A fan of that name with a paid ticket, a hold, posts and comments of every kind. */
async function makeFan(program: RunningProgram, artistId: string, seated: string) {
  const account = await registerFan('xss', program.url);
  const api = await apiOf(program, { email: account.email, password: account.password });
  await answer(api.put('/api/auth/me', { data: { name: FIRST } }));
  const reservation = await holdSeats(api, seated, [72, 73]);
  await answer(
    api.post('/api/payments/process', {
      data: { paymentMethod: 'approve', reservationId: reservation },
    }),
  );
  let post = '';
  for (const title of PAYLOADS) {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const data = { artistId, title, content: ALL };
    post = (await answer(api.post('/api/community/posts', { data, headers }))).post.id;
  }
  for (const content of PAYLOADS) {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const path = `/api/community/posts/${post}/comments`;
    await answer(api.post(path, { data: { content }, headers }));
  }
  const reporter = await registerFan('reporter', program.url);
  const other = await apiOf(program, { email: reporter.email, password: reporter.password });
  const note = { reason: 'spam', note: PAYLOADS.slice(0, 12).join(' ') };
  await answer(other.post(`/api/community/posts/${post}/reports`, { data: note }));
  const held = await holdSeats(api, seated, [0]);
  await other.dispose();
  await api.dispose();
  return { fan: { ...account, name: FIRST }, post, reservation, held };
}

/** Watches for everything that a payload could do. */
async function watched(page: Page): Promise<{ check: (what: string) => Promise<void> }> {
  const problems = watch(page.context());
  const origin = new URL(world.program.url).origin;
  page.on('dialog', (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (sent) => {
    const url = new URL(sent.url());
    const isOwn = url.origin === origin || ['data:', 'blob:', 'about:'].includes(url.protocol);
    if (!isOwn || /\/x$|xss/.test(url.pathname)) problems.push(`request: ${sent.url()}`);
  });
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) =>
      console.error(`violation: ${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  return {
    check: async (what) => {
      for (const frame of page.frames())
        expect(await frame.evaluate(() => 'xss' in window), `${what}: a script ran`).toBe(false);
      expect(
        await page.locator('#xss, [onerror], [onload], [onfocus], [ontoggle]').count(),
        `${what}: a text became an element`,
      ).toBe(0);
      expect(problems, what).toEqual([]);
    },
  };
}

/** Opens a page and looks for texts as they were written. */
async function visit(
  page: Page,
  guard: { check: (what: string) => Promise<void> },
  path: string,
  texts: readonly string[],
): Promise<void> {
  await page.goto(`${world.program.url}${path}`);
  for (const text of texts) {
    const place = page.locator(':visible', { hasText: text });
    const value = page.locator(`input, textarea, option, canvas`);
    await expect(async () => {
      const values = await value.evaluateAll((all) =>
        all.map((one) => (one as HTMLInputElement).value ?? one.textContent),
      );
      expect((await place.count()) > 0 || values.some((one) => one?.includes(text)), text).toBe(
        true,
      );
    }, `${path} shows ${text}`).toPass({ timeout: 15_000 });
  }
  await expect(page.locator('main [aria-busy="true"]')).toHaveCount(0);
  // Whoever moves over texts or into fields sets nothing off.
  await page.keyboard.press('Tab');
  await guard.check(path);
}

test('the payloads are live where a page would be careless', async ({ page }) => {
  await page.goto('about:blank');
  let live = 0;
  for (const payload of PAYLOADS) {
    const ran = await page.evaluate(async (html) => {
      const frame = document.createElement('iframe');
      document.body.append(frame);
      const inside = frame.contentWindow as Window & { xss?: number };
      inside.document.open();
      inside.document.write(`<body>${html}`);
      inside.document.close();
      await new Promise((resolve) => setTimeout(resolve, 60));
      const hasRun = 'xss' in inside;
      frame.remove();
      return hasRun;
    }, payload);
    if (ran) live += 1;
  }
  expect(live).toBeGreaterThan(20);
});

test('pages for everybody', async ({ page }) => {
  test.setTimeout(180_000);
  const guard = await watched(page);
  const { ids } = world;
  await visit(page, guard, '/', []);
  await visit(page, guard, '/events', [FIRST]);
  await visit(page, guard, '/events?page=2', []);
  await visit(page, guard, '/events?view=calendar&status=all', []);
  await visit(page, guard, `/search?q=${encodeURIComponent(FIRST)}`, []);
  for (const payload of PAYLOADS.slice(0, 4))
    await visit(page, guard, `/search?q=${encodeURIComponent(payload)}`, []);
  await visit(page, guard, `/events/${ids.seated}`, PAYLOADS);
  await visit(page, guard, `/events/${ids.standing}`, PAYLOADS);
  await visit(page, guard, '/artists', PAYLOADS.slice(0, 10));
  await visit(page, guard, `/artists/${ids.artist}`, PAYLOADS);
  await visit(page, guard, '/community', [PAYLOADS[39]]);
  await visit(page, guard, `/community/${ids.post}`, PAYLOADS);
  await visit(page, guard, '/news', [PAYLOADS[39]]);
  await visit(page, guard, `/news/${ids.news}`, PAYLOADS);
});

test('pages of a fan and the waiting page', async ({ page }) => {
  test.setTimeout(180_000);
  await logInAt(page, world.program.url, world.fan);
  const guard = await watched(page);
  const { ids } = world;
  await visit(page, guard, `/events/${ids.seated}/seats`, [FIRST]);
  await page.getByRole('button', { name: '목록', exact: true }).click();
  for (const payload of PAYLOADS)
    await expect(page.getByText(payload).first(), payload).toBeAttached();
  await guard.check('the list of sections');
  await visit(page, guard, `/events/${ids.standing}/book`, [FIRST]);
  await visit(page, guard, '/my/reservations', [FIRST]);
  await visit(page, guard, `/my/reservations/${ids.reservation}`, [FIRST]);
  await visit(page, guard, '/my/notifications', []);
  await visit(page, guard, '/my/account', [FIRST]);
  await visit(page, guard, '/my/transfers', []);
  await visit(page, guard, '/transfers', []);
  const admin = await apiOf(world.program, world.program.admin);
  for (let from = 0; from < PAYLOADS.length; from += 10) {
    const message = PAYLOADS.slice(from, from + 10).join(' ');
    await answer(admin.put(`/api/admin/queue/${ids.standing}/message`, { data: { message } }));
    await page.goto(`${world.program.url}/queue/${ids.standing}`);
    await page.waitForLoadState('networkidle').catch(() => {});
    await guard.check('the waiting page');
  }
  await admin.dispose();
});

test('the checkout and the payment window of the sandbox', async ({ page }) => {
  await logInAt(page, world.program.url, world.fan);
  const guard = await watched(page);
  await visit(page, guard, `/checkout/reservation/${world.ids.held}`, [FIRST]);
  await page.getByLabel(/결제에 동의합니다/).check();
  await page.getByRole('button', { name: /결제하기/ }).click();
  await page.waitForURL(/\/sandbox\/pay/);
  await expect(page.getByText(FIRST).first()).toBeVisible();
  await guard.check('the payment window');
  await chooseCard(page);
  await page.waitForURL(/\/result/);
  await guard.check('the result');
});

test('pages of organisers', async ({ page }) => {
  test.setTimeout(240_000);
  await logInAt(page, world.program.url, world.program.admin);
  const guard = await watched(page);
  const { ids } = world;
  const admin = await apiOf(world.program, world.program.admin);
  const { users } = await answer(admin.get(`/api/auth/admin/users?q=${world.fan.email}`));
  await admin.dispose();
  await visit(page, guard, '/admin', []);
  await visit(page, guard, '/admin/events', [FIRST]);
  await visit(page, guard, `/admin/events/${ids.seated}`, [FIRST]);
  await visit(page, guard, `/admin/events/${ids.seated}/edit`, [FIRST]);
  await visit(page, guard, `/admin/events/${ids.standing}/tickets`, [FIRST]);
  await visit(page, guard, '/admin/halls', [FIRST]);
  await visit(page, guard, `/admin/halls/${ids.hall}`, PAYLOADS);
  await visit(page, guard, '/admin/payments', []);
  await visit(page, guard, '/admin/users', []);
  await visit(page, guard, `/admin/users/${users[0].id}`, [FIRST]);
  await visit(page, guard, '/admin/moderation', [PAYLOADS[0]]);
  await visit(page, guard, '/admin/moderation/posts', [PAYLOADS[39]]);
  await visit(page, guard, '/admin/news', [PAYLOADS[39]]);
  await visit(page, guard, `/admin/news/${ids.news}`, PAYLOADS.slice(0, 3));
  await visit(page, guard, '/admin/mails', []);
  await visit(page, guard, '/admin/log', []);
});
