/** What the tests share: a page that is watched, a fan with an account, and the accessibility check. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import {
  type APIRequestContext,
  type BrowserContext,
  expect,
  type Locator,
  type Page,
  request,
  type Route,
  test as base,
} from '@playwright/test';
import jsQR from 'jsqr';
import { readTexts } from '../scripts/texts.js';
import { findNonce } from '../src/lib/session/nonce';

const axeSource = readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);

/** What a browser says of requests of its own page; the gateway refuses changes without it. */
export const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin' };

export interface Account {
  readonly email: string;
  readonly password: string;
  readonly name: string;
}

interface TestFixtures {
  /** Console messages and failed requests that a test expects, such as a refusal it provokes. */
  allowed: RegExp | null;
  watched: void;
  /** The page of a fan who is logged in. */
  fanPage: Page;
}

export const test = base.extend<TestFixtures, { account: Account; accountOf: string }>({
  allowed: [null, { option: true }],

  // eslint-disable-next-line no-empty-pattern -- Playwright reads what a fixture needs from it.
  baseURL: async ({}, use) => {
    await use(process.env.URR_URL);
  },

  /** Every test fails if the page logs anything or a request fails. */
  watched: [
    async ({ context, allowed }, use) => {
      const problems = watch(context);
      await use();
      expect(problems.filter((one) => !allowed?.test(one))).toEqual([]);
    },
    { auto: true },
  ],

  /** Tests that buy or join name an account of their own, so that the lists of others stay empty. */
  accountOf: ['reader', { option: true, scope: 'worker' }],

  account: [
    async ({ accountOf }, use, info) => {
      await use(await registerFan(`${accountOf}${info.workerIndex}`));
    },
    { scope: 'worker' },
  ],

  fanPage: async ({ page, account }, use) => {
    await logIn(page, account);
    await use(page);
  },
});

export { expect };

/** All pages of a context. */
export function watch(context: BrowserContext): string[] {
  const problems: string[] = [];
  context.on('console', (message) => {
    // Tests that change answers block the service worker.
    if (!message.text().includes('registration blocked by Playwright'))
      problems.push(`console ${message.type()}: ${message.text()}`);
  });
  context.on('weberror', (error) => problems.push(`error: ${error.error().message}`));
  context.on('requestfailed', (failed) => {
    const reason = failed.failure()?.errorText ?? '';
    // Leaving a page ends what it was still loading.
    if (reason !== 'net::ERR_ABORTED') problems.push(`failed: ${failed.url()} ${reason}`);
  });
  context.on('response', (response) => {
    if (response.status() >= 400) problems.push(`status ${response.status()}: ${response.url()}`);
  });
  return problems;
}

/** Logs a page in, as the login page does. */
export async function logIn(page: Page, account: Account): Promise<void> {
  await logInAt(page, process.env.URR_URL ?? '', account);
}

export async function logInAt(
  page: Page,
  url: string,
  { email, password }: { email: string; password: string },
): Promise<void> {
  const data = { email, password };
  const response = await page.request.post(`${url}/api/auth/login`, { data, headers: SAME_ORIGIN });
  expect(response.ok(), await response.text()).toBe(true);
  const { user, expiresIn } = await response.json();
  const stored = JSON.stringify({ user, accessEndsAt: Date.now() + expiresIn * 1000 });
  await page.addInitScript(
    ([value, origin]) => {
      if (location.origin === origin && !localStorage.getItem('urr.session'))
        localStorage.setItem('urr.session', value ?? '');
    },
    [stored, new URL(url).origin],
  );
}

let registered = 0;

/** Registers through the API, as the page does. */
export async function registerFan(
  label: string,
  baseURL = process.env.URR_URL ?? '',
  name = '김우르',
): Promise<Account> {
  const api = await request.newContext({ baseURL });
  const task = await (await api.get('/api/auth/challenge?for=register')).json();
  const { terms } = await (await api.get('/api/auth/terms')).json();
  const account = {
    email: `${label}.${process.pid}.${Date.now()}.${registered++}@example.com`,
    password: 'a long enough secret',
    name,
  };
  const response = await api.post('/api/auth/register', {
    data: {
      ...account,
      terms: terms.map((one: { type: string; version: string }) => ({
        type: one.type,
        version: one.version,
        agreed: true,
      })),
    },
    headers: {
      'x-proof-of-work': `${task.challenge}:${findNonce(`${task.challenge}:`, task.difficulty)}`,
    },
  });
  expect(response.status(), await response.text()).toBe(201);
  await api.dispose();
  return account;
}

/** Another fan, without a browser. */
export async function otherFan(
  label: string,
  baseURL = process.env.URR_URL ?? '',
): Promise<APIRequestContext> {
  const { email, password } = await registerFan(label, baseURL);
  const api = await request.newContext({ baseURL, extraHTTPHeaders: SAME_ORIGIN });
  const login = await api.post('/api/auth/login', { data: { email, password } });
  expect(login.ok(), await login.text()).toBe(true);
  return api;
}

/** Enters the sale of an event; fails if the room is full. */
export async function enter(api: APIRequestContext, eventId: string): Promise<string> {
  const checked = await api.post(`/api/queue/check/${eventId}`, { headers: SAME_ORIGIN });
  const { entryToken, status, code } = await checked.json();
  expect(status, `there is a slot: ${code ?? ''}`).toBe('active');
  return entryToken;
}

/** Holds seats, and returns the id of the reservation. */
export async function holdSeats(api: APIRequestContext, eventId: string, seatIds: number[]) {
  const headers = { ...SAME_ORIGIN, 'x-queue-entry-token': await enter(api, eventId) };
  const held = await api.post('/api/seats/reserve', { data: { eventId, seatIds }, headers });
  expect(held.status(), await held.text()).toBe(201);
  return (await held.json()).reservation.id as string;
}

/** Holds tickets of the first type of a standing event. */
export async function holdTickets(api: APIRequestContext, eventId: string, quantity = 1) {
  const headers = { ...SAME_ORIGIN, 'x-queue-entry-token': await enter(api, eventId) };
  const { ticketTypes } = await (await api.get(`/api/tickets/event/${eventId}`)).json();
  const items = [{ ticketTypeId: ticketTypes[0].id, quantity }];
  const held = await api.post('/api/reservations', { data: { eventId, items }, headers });
  expect(held.status(), await held.text()).toBe(201);
  return (await held.json()).reservation.id as string;
}

/** Pays at once, with a test card. */
export async function payNow(api: APIRequestContext, data: object): Promise<void> {
  const paid = await api.post('/api/payments/process', {
    data: { paymentMethod: 'approve', ...data },
    headers: SAME_ORIGIN,
  });
  expect(paid.status(), await paid.text()).toBe(200);
}

/** Becomes a member of an artist. */
export async function join(api: APIRequestContext, artistId: string): Promise<void> {
  const options = { data: { artistId }, headers: SAME_ORIGIN };
  const subscribed = await api.post('/api/memberships/subscribe', options);
  if (subscribed.status() === 409) return;
  const { membershipId: referenceId } = await subscribed.json();
  await payNow(api, { paymentType: 'membership', referenceId });
}

/** Agrees at the checkout and opens the payment window of the sandbox. */
export async function openWindow(page: Page): Promise<void> {
  await page.getByLabel(/결제에 동의합니다|agree to pay/).check();
  await page.getByRole('button', { name: /결제하기|^Pay ₩/ }).click();
  await page.waitForURL(/\/sandbox\/pay/);
}

export async function chooseCard(page: Page, card = 'approve'): Promise<void> {
  await page.locator(`input[value="${card}"]`).check();
  await page.locator('button.go').click();
}

/** Agrees, and pays with a test card. */
export async function pay(page: Page, card = 'approve'): Promise<void> {
  await openWindow(page);
  await chooseCard(page, card);
}

/** Tab until something has the focus, as somebody without a mouse does. */
export async function tabTo(page: Page, wanted: string | Locator, stepsMax = 80): Promise<void> {
  const target = typeof wanted === 'string' ? page.locator(wanted).first() : wanted;
  await expect(target).toBeVisible();
  for (let step = 0; step < stepsMax; step++) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`${String(wanted)} is not reached by ${stepsMax} tabs`);
}

/** Reads a QR code from the screen, as a scanner does. */
export async function scanQr(page: Page): Promise<string> {
  const code = page.getByRole('img', { name: /QR/ }).first();
  await expect(code).toBeVisible();
  await code.evaluate((element) => element.scrollIntoView({ block: 'center' }));
  return readQr(page, await code.screenshot({ scale: 'css' }));
}

/** The text of a QR code in a picture. */
export async function readQr(page: Page, png: Buffer): Promise<string> {
  const { data, width, height } = await page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
    const { width, height } = bitmap;
    const context = new OffscreenCanvas(width, height).getContext('2d')!;
    context.drawImage(bitmap, 0, 0);
    return { data: [...context.getImageData(0, 0, width, height).data], width, height };
  }, png.toString('base64'));
  const found = jsQR(Uint8ClampedArray.from(data), width, height);
  expect(found, 'the QR code can be read').toBeTruthy();
  return found!.data;
}

/** While a dialog appears its colours are mixed with what is below. */
export async function dialogAtRest(page: Page): Promise<void> {
  await page.locator('dialog[open]').waitFor();
  await animationsEnd(page);
}

/** A dialog that closes meanwhile is not waited for. */
function animationsEnd(page: Page): Promise<unknown> {
  return page.evaluate(() => {
    const dialogs = [...document.querySelectorAll('dialog[open]')];
    const animations = dialogs.flatMap((dialog) => dialog.getAnimations());
    return Promise.allSettled(animations.map((one) => one.finished));
  });
}

/** No serious or critical finding of axe. */
export async function expectAccessible(page: Page): Promise<void> {
  await animationsEnd(page);
  await page.evaluate(axeSource);
  const findings = await page.evaluate(async () => {
    const axe = (window as unknown as { axe: typeof import('axe-core') }).axe;
    const { violations } = await axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    });
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`);
  });
  expect(findings).toEqual([]);
}

export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const [content, window] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  expect(content).toBeLessThanOrEqual(window ?? 0);
}

export const LAYOUT_SHIFT_MAX = 0.05;

/** How much has jumped since the page was opened. */
export function layoutShift(page: Page): Promise<number> {
  return page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        let sum = 0;
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries())
            sum += (entry as unknown as { value: number }).value;
        }).observe({ type: 'layout-shift', buffered: true });
        setTimeout(() => resolve(sum), 300);
      }),
  );
}

/** Nothing has jumped while the page loaded. */
export async function expectStill(page: Page): Promise<void> {
  expect(await layoutShift(page), 'layout shift').toBeLessThanOrEqual(LAYOUT_SHIFT_MAX);
}

/** The texts of the pages by their keys. */
export function textsOf(locale: 'ko' | 'en'): Record<string, string> {
  return readTexts(locale);
}

/** The name of the site is the same everywhere. */
const BRAND = '우르르';

/** The texts of the other language as patterns; what both languages share is none of them. */
function foreignTexts(locale: 'ko' | 'en'): RegExp[] {
  const own = new Set([...Object.values(textsOf(locale)), BRAND]);
  return Object.values(textsOf(locale === 'ko' ? 'en' : 'ko'))
    .filter((text) => !own.has(text) && /\p{L}{2}/u.test(text.replace(/\{[^}]*\}/g, '')))
    .map((text) => {
      const parts = text
        .split(/\{[^}]*\}/)
        .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
      return new RegExp(`^${parts.join('.+')}$`, 's');
    });
}

const FOREIGN = { ko: foreignTexts('ko'), en: foreignTexts('en') };

/** No text or label of our own is in the other language. Names of events and people may be. */
export async function expectOneLanguage(page: Page, locale: 'ko' | 'en'): Promise<void> {
  const texts = await page.evaluate(() => {
    const found: string[] = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const parent = walker.currentNode.parentElement;
      // What people wrote is in the language that they chose.
      if (parent && !parent.closest('script, style, option, [translate="no"]'))
        found.push(walker.currentNode.nodeValue ?? '');
    }
    for (const element of document.querySelectorAll('[aria-label], [placeholder], [title], [alt]'))
      for (const name of ['aria-label', 'placeholder', 'title', 'alt'])
        found.push(element.getAttribute(name) ?? '');
    return found.map((text) => text.trim()).filter(Boolean);
  });
  // Names of events and people are often in both languages.
  const own = texts.filter((text) => locale === 'en' || !/\p{Script=Hangul}/u.test(text));
  const foreign = own.filter((text) => FOREIGN[locale].some((pattern) => pattern.test(text)));
  expect(foreign, `texts that are not ${locale}`).toEqual([]);
}

/** Sales of tests, of the organiser's journey, and of rehearsals on a cluster. */
const MADE_BY_TESTS = /-\d+$|^여정 콘서트$|^Rehearsal$/;

/** The first event of the demo data with a status. */
export async function eventWith(page: Page, status: string, kind = 'seated'): Promise<string> {
  const response = await page.request.get(`/api/events?status=${status}&limit=100`);
  const { events } = await response.json();
  const demo = events.filter((one: { title: string }) => !MADE_BY_TESTS.test(one.title));
  const found = demo.find((one: { kind: string }) => one.kind === kind) ?? demo[0];
  expect(found, `the demo data has an event that is ${status}`).toBeTruthy();
  return found.id;
}

export async function firstPost(page: Page): Promise<string> {
  const { posts } = await (await page.request.get('/api/community/posts')).json();
  return posts[0].id;
}

export async function firstNews(page: Page): Promise<string> {
  const { news } = await (await page.request.get('/api/news')).json();
  return news[0].id;
}

export async function firstArtist(page: Page): Promise<string> {
  const { artists } = await (await page.request.get('/api/artists')).json();
  return artists[0].id;
}

/** Passes a request on and changes its answer. A reload ends requests that are under way. */
export async function changeAnswer<T extends object>(
  route: Route,
  change: (answer: T) => T,
): Promise<void> {
  const response = await route.fetch().catch(() => null);
  const answer = (await response?.json().catch(() => null)) as T | null | undefined;
  if (answer) await route.fulfill({ json: change(answer) }).catch(() => undefined);
  else await route.abort().catch(() => undefined);
}
