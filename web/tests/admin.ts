/** People who work here, and what a test of their pages needs: made through the API. */
import {
  type APIRequestContext,
  type Browser,
  type BrowserContextOptions,
  expect,
  type Page,
  request,
} from '@playwright/test';
import {
  type Account,
  expectAccessible,
  expectNoSidewaysScroll,
  expectOneLanguage,
  logInAt,
  registerFan,
  SAME_ORIGIN,
} from './fan';
import { unique } from './organiser';
import type { RunningProgram } from './program';

export type WorkRole = 'staff' | 'organiser' | 'support' | 'admin';

export interface Worker extends Account {
  readonly id: string;
}

/** The program that most tests share, or one of their own. */
type Target = Pick<RunningProgram, 'url' | 'admin'>;

const sharedProgram = (): Target => ({
  url: process.env.URR_URL ?? '',
  admin: JSON.parse(process.env.URR_TEST_ADMIN ?? 'null'),
});

/** The API as the administrator of the tests calls it. */
export async function adminApi(program = sharedProgram()): Promise<APIRequestContext> {
  const api = await request.newContext({
    baseURL: program.url,
    extraHTTPHeaders: SAME_ORIGIN,
  });
  const data = program.admin;
  await answerOf(api.post('/api/auth/login', { data }));
  return api;
}

/** The body of an answer; a refusal fails the test with what the server said. */
export async function answerOf(sent: Promise<import('@playwright/test').APIResponse>) {
  const response = await sent;
  expect(response.ok(), `${response.url()}: ${response.status()} ${await response.text()}`).toBe(
    true,
  );
  return response.status() === 204 ? null : response.json();
}

/** An account with a role. */
export async function registerWorker(
  role: WorkRole,
  label: string = role,
  program = sharedProgram(),
): Promise<Worker> {
  const account = await registerFan(label, program.url);
  const api = await adminApi(program);
  const { users } = await answerOf(
    api.get(`/api/auth/admin/users?q=${encodeURIComponent(account.email)}`),
  );
  await answerOf(api.put(`/api/auth/admin/users/${users[0].id}/role`, { data: { role } }));
  await api.dispose();
  return { ...account, id: users[0].id };
}

/** The API as one of them calls it. */
export async function apiOf(
  account: Account,
  baseURL = process.env.URR_URL ?? '',
): Promise<APIRequestContext> {
  const api = await request.newContext({ baseURL, extraHTTPHeaders: SAME_ORIGIN });
  const { email, password } = account;
  await answerOf(api.post('/api/auth/login', { data: { email, password } }));
  return api;
}

/** A page of somebody else, in a browser context of its own. */
export async function pageOf(
  browser: Browser,
  account: Account,
  options: BrowserContextOptions = {},
): Promise<Page> {
  const baseURL = options.baseURL ?? process.env.URR_URL ?? '';
  const context = await browser.newContext({
    locale: 'ko-KR',
    timezoneId: 'Asia/Seoul',
    ...options,
    baseURL,
  });
  const page = await context.newPage();
  await logInAt(page, baseURL, account);
  return page;
}

/** The administrator of the tests, as an account to log in with. */
export function testAdmin(): Account {
  return { name: '관리자', ...JSON.parse(process.env.URR_TEST_ADMIN ?? 'null') };
}

export interface Place {
  readonly venueId: string;
  readonly venueName: string;
  readonly hallId: string;
}

/** A venue with a hall of two grades. */
export async function createPlace(api: APIRequestContext): Promise<Place> {
  const name = unique('시험 극장');
  const { venue } = await answerOf(
    api.post('/api/admin/venues', { data: { name, address: '서울특별시 중구 1' } }),
  );
  const gradeMapping = [
    { grade: 'VIP', fromRow: 1, toRow: 2 },
    { grade: 'R', fromRow: 3, toRow: 6 },
  ];
  const { hall } = await answerOf(
    api.post(`/api/admin/venues/${venue.id}/halls`, {
      data: { name: '대극장', grid: { rows: 6, seatsPerRow: 10, gradeMapping } },
    }),
  );
  return { venueId: venue.id, venueName: name, hallId: hall.id };
}

export async function createArtist(
  api: APIRequestContext,
): Promise<{ readonly id: string; readonly name: string }> {
  const data = { name: unique('시험 밴드'), membershipPrice: 10_000 };
  return (await answerOf(api.post('/api/admin/artists', { data }))).artist;
}

export interface StandingOptions {
  readonly title?: string;
  readonly tickets?: number;
  readonly artistId?: string;
  readonly opensInDays?: number;
}

/** A standing event that is on sale, of whoever calls. The venue is the administrator's. */
export async function createStanding(
  api: APIRequestContext,
  venueId: string,
  { title = unique('시험 공연'), tickets = 50, artistId, opensInDays }: StandingOptions = {},
): Promise<string> {
  const day = 86_400_000;
  const opensAt = opensInDays === undefined ? Date.now() - 60_000 : Date.now() + opensInDays * day;
  const { event } = await answerOf(
    api.post('/api/admin/events', {
      data: {
        title,
        venueId,
        ...(artistId && { artistId }),
        ticketTypes: [{ name: '일반석 1층', price: 55_000, total: tickets }],
        saleStartsAt: new Date(opensAt).toISOString(),
        saleEndsAt: new Date(Date.now() + 30 * day).toISOString(),
        startsAt: new Date(Date.now() + 40 * day).toISOString(),
      },
    }),
  );
  await expect
    .poll(async () => (await answerOf(api.get(`/api/events/${event.id}`))).event.inventoryReady, {
      timeout: 15_000,
    })
    .toBe(true);
  return event.id;
}

/** A time in Korea as a field takes it, so many days from now. */
export function seoulTime(days: number, time: string): string {
  const moment = new Date(Date.now() + days * 86_400_000 + 9 * 3_600_000);
  return `${moment.toISOString().slice(0, 10)}T${time}`;
}

/** What every organiser's page must be: accessible, in one language, no wider than a small phone. */
export async function expectGoodPage(page: Page, locale: 'ko' | 'en' = 'ko'): Promise<void> {
  await expectAccessible(page);
  await expectNoSidewaysScroll(page);
  await expectOneLanguage(page, locale);
}

/** Goes with the tabulator key to what has this label or text. */
export async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    const label = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement & { labels?: NodeListOf<HTMLElement> };
      return element?.labels?.[0]?.textContent ?? element?.textContent ?? '';
    });
    if (name.test(label.trim())) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`no ${name} by keyboard`);
}
