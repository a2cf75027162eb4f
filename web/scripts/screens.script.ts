/**
 * Writes `docs/screens/`: ten main pages on a phone and a desktop, light and dark, in both languages.
 * `npm run screens` starts a program with demo data and plays the fans that the pages need.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { APIRequestContext, Browser, Page } from '@playwright/test';
import {
  type Account,
  changeAnswer,
  enter,
  eventWith,
  expect,
  holdSeats,
  logIn,
  otherFan,
  payNow,
  registerFan,
  SAME_ORIGIN,
  test,
} from '../tests/fan';
import { Organiser } from '../tests/organiser';

const OUTPUT = fileURLToPath(new URL('../../docs/screens/', import.meta.url));
const QUALITY = 72;
const WAITING_AHEAD = 11;
/** So many enter before the picture is taken: the line has a speed. */
const ENTERED = 4;

const LOOKS = [
  { name: 'phone-light-ko', isPhone: true, colorScheme: 'light', locale: 'ko-KR' },
  { name: 'phone-dark-en', isPhone: true, colorScheme: 'dark', locale: 'en-GB' },
  { name: 'desktop-light-en', isPhone: false, colorScheme: 'light', locale: 'en-GB' },
  { name: 'desktop-dark-ko', isPhone: false, colorScheme: 'dark', locale: 'ko-KR' },
] as const;
type Look = (typeof LOOKS)[number];

interface Shot {
  readonly name: string;
  readonly path: string;
  /** What is visible when the page is there. */
  readonly ready: string;
  readonly account?: Account;
  /** Before the page is opened. */
  readonly arrange?: (page: Page) => Promise<void>;
  readonly prepare?: (page: Page) => Promise<void>;
}

async function take(browser: Browser, look: Look, shot: Shot): Promise<void> {
  const context = await browser.newContext({
    baseURL: process.env.URR_URL ?? '',
    locale: look.locale,
    timezoneId: 'Asia/Seoul',
    colorScheme: look.colorScheme,
    viewport: look.isPhone ? { width: 390, height: 844 } : { width: 1280, height: 800 },
    deviceScaleFactor: look.isPhone ? 2 : 1,
    isMobile: look.isPhone,
    hasTouch: look.isPhone,
    reducedMotion: 'reduce',
    serviceWorkers: 'block',
  });
  const page = await context.newPage();
  if (shot.account) await logIn(page, shot.account);
  await shot.arrange?.(page);
  await page.goto(shot.path);
  await expect(page.locator(shot.ready).first()).toBeVisible({ timeout: 30_000 });
  await shot.prepare?.(page);
  await page.waitForLoadState('networkidle', { timeout: 5_000 }).catch(() => undefined);
  await page.evaluate(() => document.fonts.ready);
  const client = await context.newCDPSession(page);
  const { data } = await client.send('Page.captureScreenshot', {
    format: 'webp',
    quality: QUALITY,
  });
  writeFileSync(`${OUTPUT}${shot.name}-${look.name}.webp`, Buffer.from(data, 'base64'));
  await context.close();
}

async function buy(api: APIRequestContext, eventId: string, seats: number[]): Promise<string> {
  const id = await holdSeats(api, eventId, seats);
  await payNow(api, { reservationId: id });
  return id;
}

/** The map looks as in the middle of a sale: groups of seats are shown as sold. */
async function showSold(page: Page): Promise<void> {
  await page.route(/\/api\/seats\/events\/[^/]+$/, (route) =>
    changeAnswer<{ statuses?: string }>(route, (map) => {
      const bytes = Buffer.from(map.statuses ?? '', 'base64');
      let state = 7;
      for (let at = 0; at < bytes.length; at++) {
        state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
        const share = state / 2_147_483_648;
        // Two bits a seat: four, two or no seats beside each other are sold.
        bytes[at] = share < 0.3 ? 0b10101010 : share < 0.5 ? 0b00001010 : 0;
      }
      return { ...map, statuses: bytes.toString('base64') };
    }),
  );
}

/** Posters and the waiting page use a font of the system, which must know Hangul. */
async function expectHangul(page: Page): Promise<void> {
  await page.goto('about:blank');
  const isDrawn = await page.evaluate(() => {
    const draw = (letter: string) => {
      const canvas = new OffscreenCanvas(40, 40);
      const context = canvas.getContext('2d')!;
      context.font = '30px sans-serif';
      context.fillText(letter, 2, 32);
      return context.getImageData(0, 0, 40, 40).data.join();
    };
    return draw('가') !== draw('뷁');
  });
  expect(isDrawn, 'a Korean font is installed, such as fonts-noto-cjk').toBe(true);
}

test('screens', async ({ browser, page }) => {
  await expectHangul(page);
  rmSync(OUTPUT, { recursive: true, force: true });
  mkdirSync(OUTPUT, { recursive: true });
  const organiser = await Organiser.logIn();
  const seated = await eventWith(page, 'on_sale');
  // An evening in Korea, forty days from now.
  const day = new Date(Date.now() + 40 * 86_400_000).toISOString().slice(0, 10);
  const event = { startsAt: `${day}T19:30:00+09:00` };

  // A draw, with our fan among them.
  const gathering = await organiser.createSale({
    title: '한여름 밤의 추첨 콘서트',
    tickets: 500,
    threshold: 1,
    event,
    lottery: { gatherSeconds: 10, opensInSeconds: 20 },
  });
  const fan = await registerFan('screens');
  await logIn(page, fan);
  const crowd = await Promise.all(
    Array.from({ length: WAITING_AHEAD + ENTERED }, (_, index) => otherFan(`waiting${index}`)),
  );
  await page.goto(`/draws/${gathering}`);
  for (const api of [...crowd, page.request])
    await expect(async () => {
      const joined = await api.post(`/api/queue/check/${gathering}`, { headers: SAME_ORIGIN });
      expect(joined.ok(), await joined.text()).toBe(true);
    }).toPass({ timeout: 30_000 });
  await expect
    .poll(
      async () => (await (await page.request.get(`/api/queue/draw/${gathering}`)).json()).state,
      {
        timeout: 60_000,
      },
    )
    .toBe('done');

  // A full room that moves, in which ten are before us.
  const full = await organiser.createSale({
    title: '한강의 밤, 첫 번째 이야기',
    tickets: 500,
    threshold: 1,
  });
  await organiser.setRoom(full, { message: '무대 점검으로 5분 늦게 입장을 시작합니다.' });
  await enter(crowd[0]!, full);
  for (const api of crowd.slice(1)) await api.post(`/api/queue/check/${full}`);
  await page.request.post(`/api/queue/check/${full}`, { headers: SAME_ORIGIN });
  for (let entered = 0; entered < ENTERED; entered++) {
    await crowd[entered]!.post(`/api/queue/leave/${full}`);
    const next = crowd[entered + 1]!;
    await expect
      .poll(async () => (await (await next.get(`/api/queue/status/${full}`)).json()).status)
      .toBe('active');
  }

  const bought = await buy(page.request, seated, [4, 5]);
  const payer = await registerFan('payer');
  const payerApi = await page
    .context()
    .browser()!
    .newContext({ baseURL: process.env.URR_URL ?? '' });
  await payerApi.request.post('/api/auth/login', {
    data: { email: payer.email, password: payer.password },
    headers: SAME_ORIGIN,
  });
  const held = await holdSeats(payerApi.request, seated, [20, 21]);
  const chooser = await registerFan('chooser');
  const { payments } = await (await page.request.get('/api/payments')).json();
  const { artists } = await (await page.request.get('/api/artists')).json();

  const shots: Shot[] = [
    // First what changes: the line has a speed for a minute, a sale opens soon, a hold ends.
    { name: 'queue', path: `/queue/${full}`, ready: '[data-f="position"]', account: fan },
    { name: 'home', path: '/', ready: 'article h3' },
    {
      name: 'checkout',
      path: `/checkout/reservation/${held}`,
      ready: '[role="timer"]',
      account: payer,
    },
    { name: 'events', path: '/events', ready: 'article h3' },
    { name: 'event', path: `/events/${seated}`, ready: 'main h1' },
    {
      name: 'seats',
      path: `/events/${seated}/seats`,
      ready: '[role="application"]',
      account: chooser,
      arrange: showSold,
      prepare: async (seats) => {
        await seats.getByRole('application').focus();
        await seats.keyboard.press('ArrowDown');
        const chosen = seats.locator('.chosen li');
        for (let step = 0; (await chosen.count()) < 2 && step < 20; step++)
          for (const key of ['ArrowRight', 'Enter']) await seats.keyboard.press(key);
        await expect(chosen).toHaveCount(2);
        await seats.getByRole('application').blur();
      },
    },
    {
      name: 'result',
      path: `/checkout/reservation/${bought}/result?orderId=${payments[0].orderId}`,
      ready: '.paid',
      account: fan,
    },
    { name: 'ticket', path: `/my/reservations/${bought}`, ready: '.ticket svg', account: fan },
    { name: 'artist', path: `/artists/${artists[0].id}`, ready: '.panel', account: fan },
    { name: 'draw', path: `/draws/${gathering}`, ready: '.checks li', account: fan },
  ];
  for (const shot of shots) for (const look of LOOKS) await take(browser, look, shot);

  for (const api of crowd) await api.dispose();
  await payerApi.close();
  await organiser.dispose();
});
