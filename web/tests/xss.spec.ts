/**
 * Forty texts that become scripts where a page forgets to treat them as texts, in everything that
 * people write, on the pages that show it: nothing runs, nothing is requested, and the text is
 * there as it was written.
 */
import { type Browser, expect, type Page, test } from '@playwright/test';
import { chooseCard, logInAt } from './fan';
import { htmlOfMails } from './mailbox';
import { runProgram } from './program';
import {
  answer,
  apiOf,
  FIRST,
  type Guard,
  makeWorld,
  PAYLOADS,
  PNG,
  shownBy,
  watched,
  type World,
} from './xss';

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

/**
 * Opens pages, which together show texts as they were written. A list moves while others write, so
 * the pages are opened again while a text is missing.
 */
async function visit(
  page: Page,
  guard: Guard,
  paths: string | readonly string[],
  texts: readonly string[],
): Promise<void> {
  const missing = new Set(texts);
  await expect(async () => {
    for (const path of typeof paths === 'string' ? [paths] : paths)
      await look(page, guard, path, missing);
    expect([...missing], `${paths}`).toEqual([]);
  }).toPass({ timeout: 90_000 });
}

/** Opens a page, and waits a moment for any text that is missing. */
async function look(page: Page, guard: Guard, path: string, missing: Set<string>): Promise<void> {
  await page.goto(`${world.program.url}${path}`);
  await expect(page.locator('main h1').first()).toBeVisible();
  await expect(page.locator('main [aria-busy="true"]')).toHaveCount(0);
  const before = missing.size;
  const giveUpAt = Date.now() + 3_000;
  do {
    const shown = await shownBy(page);
    for (const text of missing) if (shown.includes(text)) missing.delete(text);
  } while (missing.size > 0 && missing.size === before && Date.now() < giveUpAt);
  // Whoever moves over texts or into fields sets nothing off.
  await page.keyboard.press('Tab');
  await guard.check(path);
}

/** Shows the rest of a list. */
async function showAll(page: Page): Promise<void> {
  const more = page.getByRole('button', { name: '더 보기', exact: true });
  // The button goes with the last page.
  await expect(async () => {
    if (await more.isVisible()) await more.click({ timeout: 1_000 });
    await expect(more).toHaveCount(0, { timeout: 100 });
  }).toPass({ timeout: 60_000 });
}

const pages = (path: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${path}page=${index + 1}`);

/** Whether the guard says something about a page that writes a text into its markup. */
async function isNoticed(browser: Browser, payload: string, policy?: string): Promise<boolean> {
  const page = await browser.newPage();
  const guard = await watched(page, world.program.url);
  const headers = {
    'content-type': 'text/html',
    ...(policy && { 'content-security-policy': policy }),
  };
  await page.route('**/careless', (route) => route.fulfill({ headers, body: `<body>${payload}` }));
  await page.goto(`${world.program.url}/careless`);
  await page.waitForTimeout(60);
  const noticed = await guard.check('a careless page').then(
    () => false,
    () => true,
  );
  await page.context().close();
  return noticed;
}

test('on a careless page the payloads run, and the guard says so', async ({ browser }) => {
  test.setTimeout(300_000);
  const live: string[] = [];
  for (const payload of PAYLOADS) if (await isNoticed(browser, payload)) live.push(payload);
  expect(live.length).toBeGreaterThan(25);
  // Our policy stops the script; that one was there is noticed all the same.
  const policy = (await fetch(`${world.program.url}/events`)).headers.get(
    'content-security-policy',
  );
  expect(await isNoticed(browser, '<script>xss=1</script>', policy!)).toBe(true);
  expect(await isNoticed(browser, 'only a text', policy!)).toBe(false);
});

test('pages for everybody', async ({ page }) => {
  test.setTimeout(300_000);
  const guard = await watched(page, world.program.url);
  const { ids, standing, artists, posts } = world;
  await visit(page, guard, '/', []);
  await visit(page, guard, pages('/events?', 3), PAYLOADS);
  await visit(page, guard, '/events?view=calendar&status=all', []);
  for (const payload of PAYLOADS)
    await visit(page, guard, `/search?q=${encodeURIComponent(payload)}`, [payload]);
  await visit(page, guard, `/events/${ids.seated}`, PAYLOADS);
  await visit(page, guard, `/events/${standing[9]}`, PAYLOADS);
  await visit(page, guard, pages('/artists?', 2), PAYLOADS);
  await visit(page, guard, `/artists/${artists[9]}`, PAYLOADS);
  for (const [index, id] of posts.entries()) {
    await visit(page, guard, `/community/${id}`, [PAYLOADS[index]!]);
    await expect(page.locator('article img')).toHaveAttribute('alt', PAYLOADS[index]!);
  }
  // The last one has the comments.
  await expect.poll(async () => missingOf(await shownBy(page))).toEqual([]);
  await visit(page, guard, `/news/${ids.news}`, PAYLOADS);
  for (const path of ['/community', '/news']) {
    await visit(page, guard, path, [PAYLOADS[39]]);
    await showAll(page);
    await expect.poll(async () => missingOf(await shownBy(page))).toEqual([]);
    await guard.check(path);
  }
});

const missingOf = (shown: string) => PAYLOADS.filter((payload) => !shown.includes(payload));

test('heads of pages, which other sites read', async ({ page }) => {
  const { standing, artists, program } = world;
  await page.goto('about:blank');
  const paths = [standing.map((id) => `/events/${id}`), artists.map((id) => `/artists/${id}`)];
  for (const [path, payload] of paths.flatMap((some) =>
    some.map((path, index) => [path, PAYLOADS[index]!] as const),
  )) {
    const html = await (await fetch(`${program.url}${path}`)).text();
    const head = await page.evaluate((text) => {
      const parsed = new DOMParser().parseFromString(text, 'text/html');
      const title = parsed.querySelector<HTMLMetaElement>('meta[property="og:title"]');
      const inline = [...parsed.scripts].filter((script) => !script.src);
      return {
        title: title?.content,
        isCareless: parsed.querySelector('#xss, [onerror], [onload], iframe, object') !== null,
        inline: inline.filter((script) => script.text.includes('xss')).length,
      };
    }, html);
    expect(head, path).toEqual({ title: payload, isCareless: false, inline: 0 });
  }
});

test('pages of a fan and the waiting page', async ({ page }) => {
  test.setTimeout(300_000);
  const { ids, standing, reservations, program } = world;
  await logInAt(page, program.url, world.fan);
  const guard = await watched(page, program.url);
  await visit(page, guard, `/events/${ids.seated}/seats`, [FIRST]);
  await page.getByRole('button', { name: '목록', exact: true }).click();
  await expect.poll(async () => missingOf(await shownBy(page))).toEqual([]);
  await guard.check('the list of sections');
  await visit(page, guard, `/events/${standing[9]}/book`, [FIRST]);
  await visit(page, guard, '/my/reservations', [FIRST]);
  await visit(page, guard, `/my/reservations/${ids.reservation}`, [FIRST]);
  for (const [index, id] of reservations.entries())
    await visit(page, guard, `/my/reservations/${id}`, [PAYLOADS[index]!]);
  await visit(page, guard, '/my/notifications', []);
  await visit(page, guard, '/my/account', [FIRST]);
  await visit(page, guard, '/my/transfers', []);
  await visit(page, guard, '/transfers', []);
  const admin = await apiOf(program, program.admin);
  // In a room that is paused everybody waits and reads the message.
  await answer(admin.post(`/api/admin/queue/${standing[8]}/pause`));
  for (let from = 0; from < PAYLOADS.length; from += 10) {
    const message = PAYLOADS.slice(from, from + 10).join(' ');
    await answer(admin.put(`/api/admin/queue/${standing[8]}/message`, { data: { message } }));
    await page.goto(`${program.url}/queue/${standing[8]}`);
    await expect(page.locator('body')).toContainText(message);
    await guard.check('the waiting page');
  }
  await admin.dispose();
});

test('the checkout and the payment window of the sandbox', async ({ page }) => {
  await logInAt(page, world.program.url, world.fan);
  const guard = await watched(page, world.program.url);
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
  test.setTimeout(300_000);
  const { ids, standing, reservations, program } = world;
  await logInAt(page, program.url, program.admin);
  const guard = await watched(page, program.url);
  const admin = await apiOf(program, program.admin);
  const { users } = await answer(admin.get(`/api/auth/admin/users?q=${world.fan.email}`));
  await admin.dispose();
  await visit(page, guard, '/admin', []);
  await visit(page, guard, pages('/admin/events?', 3), PAYLOADS);
  await visit(page, guard, `/admin/events/${ids.seated}`, [FIRST]);
  await visit(page, guard, `/admin/events/${ids.seated}/edit`, PAYLOADS);
  await visit(page, guard, `/admin/events/${ids.seated}/settlement`, []);
  await visit(page, guard, `/admin/events/${standing[9]}/tickets`, [FIRST]);
  await visit(page, guard, pages('/admin/halls?', 2), PAYLOADS);
  await visit(page, guard, `/admin/halls/${ids.hall}`, PAYLOADS);
  await visit(page, guard, '/admin/payments', []);
  await visit(page, guard, '/admin/statistics', PAYLOADS);
  await visit(page, guard, pages('/admin/users?', 3), PAYLOADS);
  await visit(page, guard, `/admin/users/${users[0].id}`, [FIRST]);
  await visit(page, guard, '/admin/reservations', [FIRST]);
  for (const [index, id] of reservations.entries())
    await visit(page, guard, `/admin/reservations/${id}`, [PAYLOADS[index]!]);
  await visit(page, guard, '/admin/moderation', [PAYLOADS[0]]);
  await visit(page, guard, '/admin/moderation/posts', [PAYLOADS[39]]);
  await visit(page, guard, '/admin/news', [PAYLOADS[39]]);
  await visit(page, guard, `/admin/news/${ids.news}`, PAYLOADS);
  await visit(page, guard, '/admin/log', []);
});

test('the live board, with the message that it shows', async ({ page }) => {
  const { standing, program } = world;
  await logInAt(page, program.url, program.admin);
  const guard = await watched(page, program.url);
  await page.goto(`${program.url}/admin/events/${standing[8]}/live`);
  await expect(page.getByText('실시간', { exact: true })).toBeVisible({ timeout: 20_000 });
  await expect.poll(() => shownBy(page)).toContain(PAYLOADS.slice(30).join(' '));
  await guard.check('the live board');
});

test('mails, and the page that shows them', async ({ page }) => {
  test.setTimeout(300_000);
  const { program, fan } = world;
  const guard = await watched(page, program.url);
  let mails: string[] = [];
  await expect
    .poll(() => (mails = htmlOfMails(program.mails)).filter((one) => one.includes('xss')).length, {
      timeout: 60_000,
    })
    .toBeGreaterThanOrEqual(2 * PAYLOADS.length);
  const missing = new Set<string>(PAYLOADS);
  for (const html of mails) {
    await page.setContent(html);
    const shown = await page.locator('body').innerText();
    for (const text of missing) if (shown.includes(text)) missing.delete(text);
    expect(await page.locator('script, iframe, object, embed, [onerror]').count()).toBe(0);
    await guard.check('a mail');
  }
  expect([...missing]).toEqual([]);

  await logInAt(page, program.url, program.admin);
  const admin = await apiOf(program, program.admin);
  const { users } = await answer(admin.get(`/api/auth/admin/users?q=${fan.email}`));
  const listed = await answer(admin.get(`/api/admin/mails?userId=${users[0].id}&limit=100`));
  await admin.dispose();
  const ids: string[] = listed.mails.map((mail: { id: string }) => mail.id);
  await visit(page, guard, ['/admin/mails', ...ids.map((id) => `/admin/mails/${id}`)], PAYLOADS);
});

/** The cells of a file of comma-separated values. */
function cellsOf(csv: string): string[] {
  const cells = [...csv.matchAll(/"((?:[^"]|"")*)"|([^,\r\n]+)/g)];
  return cells.map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '');
}

test('files for spreadsheets', async () => {
  const { ids, program } = world;
  const admin = await apiOf(program, program.admin);
  for (const path of [
    '/api/stats/events.csv?limit=100',
    `/api/admin/events/${ids.seated}/reservations.csv`,
    `/api/admin/events/${ids.seated}/payments.csv`,
    `/api/admin/events/${ids.seated}/settlement.csv`,
  ]) {
    const file = await admin.get(path);
    expect(file.ok(), path).toBe(true);
    const headers = file.headers();
    expect(headers['content-type'], path).toMatch(/^text\/csv/);
    expect(headers['content-disposition'], path).toMatch(/^attachment/);
    expect(headers['x-content-type-options'], path).toBe('nosniff');
    const cells = cellsOf(await file.text());
    // What a spreadsheet would compute stands behind an apostrophe.
    const isAllowed = (cell: string) => !/^[=+\-@\t]/.test(cell) || !Number.isNaN(Number(cell));
    expect(
      cells.filter((cell) => !isAllowed(cell)),
      path,
    ).toEqual([]);
    if (!path.includes('stats')) continue;
    const shown = new Set(cells.map((cell) => cell.replace(/^'(?=[=+\-@])/, '')));
    expect(PAYLOADS.filter((payload) => !shown.has(payload))).toEqual([]);
  }
  await admin.dispose();
});

test('names of files that are uploaded', async () => {
  const admin = await apiOf(world.program, world.program.admin);
  for (const payload of PAYLOADS) {
    const image = { name: `${payload}.png`, mimeType: 'image/png', buffer: PNG };
    const uploaded = await admin.post('/api/image/upload', { multipart: { image } });
    // The name is forgotten: the picture has the hash of its bytes as its name.
    expect(await uploaded.text(), payload).not.toContain('xss=1');
    if (!uploaded.ok()) continue;
    const served = await admin.get((await uploaded.json()).image.url);
    expect(served.headers()['content-type'], payload).toBe('image/png');
    expect(JSON.stringify(served.headers()), payload).not.toContain('xss=1');
  }
  await admin.dispose();
});
