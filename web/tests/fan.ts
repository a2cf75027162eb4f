/** What the tests share: a page that is watched, a fan with an account, and the accessibility check. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test as base, expect, request, type Page, type Route } from '@playwright/test';
import { findNonce } from '../src/lib/session/sha256';

const axeSource = readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);

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
    async ({ page, allowed }, use) => {
      const problems = watch(page);
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

  fanPage: async ({ page, account, baseURL }, use) => {
    const response = await page.request.post('/api/auth/login', {
      data: { email: account.email, password: account.password },
      headers: { 'sec-fetch-site': 'same-origin' },
    });
    expect(response.ok(), await response.text()).toBe(true);
    const { user, expiresIn } = await response.json();
    const stored = JSON.stringify({ user, accessEndsAt: Date.now() + expiresIn * 1000 });
    await page.addInitScript(
      ([value, origin]) => {
        if (location.origin === origin && !localStorage.getItem('urr.session'))
          localStorage.setItem('urr.session', value ?? '');
      },
      [stored, new URL(baseURL ?? '').origin],
    );
    await use(page);
  },
});

export { expect };

function watch(page: Page): string[] {
  const problems: string[] = [];
  page.on('console', (message) => problems.push(`console ${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  page.on('requestfailed', (failed) => {
    const reason = failed.failure()?.errorText ?? '';
    // Leaving a page ends what it was still loading.
    if (reason !== 'net::ERR_ABORTED') problems.push(`failed: ${failed.url()} ${reason}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`status ${response.status()}: ${response.url()}`);
  });
  return problems;
}

/** Registers through the API, as the page does. */
export async function registerFan(label: string): Promise<Account> {
  const api = await request.newContext({ baseURL: process.env.URR_URL ?? '' });
  const task = await (await api.get('/api/auth/challenge?for=register')).json();
  const { terms } = await (await api.get('/api/auth/terms')).json();
  const account = {
    email: `${label}.${Date.now()}@example.com`,
    password: 'a long enough secret',
    name: '김우르',
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

/** No serious or critical finding of axe. */
export async function expectAccessible(page: Page): Promise<void> {
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

/** The first event with a status, from the program. */
export async function eventWith(page: Page, status: string, kind = 'seated'): Promise<string> {
  const response = await page.request.get(`/api/events?status=${status}&limit=100`);
  const { events } = await response.json();
  const found = events.find((one: { kind: string }) => one.kind === kind) ?? events[0];
  expect(found, `the demo data has an event that is ${status}`).toBeTruthy();
  return found.id;
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
