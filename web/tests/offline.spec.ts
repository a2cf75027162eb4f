import type { Page } from '@playwright/test';
import { expect, test } from './fan';

test.use({ allowed: /INTERNET_DISCONNECTED|Failed to load resource/ });

test('without a network a visited page opens from its shell, another one says so', async ({
  page,
  context,
}) => {
  await page.goto('/help');
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.reload();
  await context.setOffline(true);

  await page.goto('/help');
  await expect(page.getByRole('heading', { name: '도움말', level: 1 })).toBeVisible();
  await page.goto('/artists');
  await expect(page.getByRole('heading', { name: '연결이 끊겼어요' })).toBeVisible();
});

/** What the browser keeps, with its size. */
async function keptFiles(page: Page): Promise<Map<string, number>> {
  await page.evaluate(() => navigator.serviceWorker.ready);
  const kept = await page.evaluate(async () => {
    const files: [string, number][] = [];
    for (const name of await caches.keys()) {
      const cache = await caches.open(name);
      for (const request of await cache.keys()) {
        const body = await (await cache.match(request, { ignoreVary: true }))?.blob();
        files.push([new URL(request.url).pathname, body?.size ?? 0]);
      }
    }
    return files;
  });
  return new Map(kept);
}

/** The scripts of a page that another page does not load. */
async function ownScripts(page: Page, path: string, other: string): Promise<string[]> {
  const scripts = async (of: string) => {
    const html = await (await page.request.get(of)).text();
    return [...html.matchAll(/href="([^"]+\.js)" rel="modulepreload"/g)].map(
      ([, file = '']) => file,
    );
  };
  const known = new Set(await scripts(other));
  return (await scripts(path)).filter((file) => !known.has(file));
}

const KEPT_KB_MAX = 900;

test('fans keep nothing that only organisers load', async ({ page }) => {
  await page.goto('/');
  const kept = await keptFiles(page);
  // The control: what a page of fans loads is kept before it was opened.
  const ofFans = await ownScripts(page, '/my/reservations', '/');
  expect(ofFans.length).toBeGreaterThan(0);
  expect(ofFans.filter((file) => !kept.has(file))).toEqual([]);
  for (const path of ['/admin/halls/new', '/admin/statistics', '/admin/events/new']) {
    const own = await ownScripts(page, path, '/');
    const nodes = own.filter((file) => file.includes('/nodes/'));
    expect(nodes.length, path).toBeGreaterThan(0);
    expect(
      nodes.filter((file) => kept.has(file)),
      path,
    ).toEqual([]);
  }
  const bytes = [...kept.values()].reduce((sum, size) => sum + size, 0);
  if (process.env.URR_PRINT_BYTES) console.log(`kept by a fan: ${Math.round(bytes / 1024)} KB`);
  expect(bytes).toBeLessThan(KEPT_KB_MAX * 1024);
});

test('prices and places are never kept', async ({ page }) => {
  await page.goto('/');
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.reload();
  await expect(page.locator('article h3').first()).toBeVisible();
  const kept = await page.evaluate(async () => {
    const names = await caches.keys();
    const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
    return requests.flat().map((request) => new URL(request.url).pathname);
  });
  expect(kept.length).toBeGreaterThan(5);
  expect(kept.filter((path) => path.startsWith('/api/'))).toEqual([]);
});

test('the site can be installed', async ({ page, context }) => {
  await page.goto('/');
  await page.evaluate(() => navigator.serviceWorker.ready);
  const client = await context.newCDPSession(page);
  const { installabilityErrors } = await client.send('Page.getInstallabilityErrors');
  // Windows that keep nothing, as those of tests, cannot install anything.
  expect(installabilityErrors.filter(({ errorId }) => errorId !== 'in-incognito')).toEqual([]);
  const manifest = await (await page.request.get('/manifest.webmanifest')).json();
  for (const { src } of manifest.icons) {
    const icon = await page.request.get(src);
    expect(icon.ok(), src).toBe(true);
    expect(icon.headers()['content-type']).toMatch(/^image\//);
  }
  for (const { url } of manifest.shortcuts) expect((await page.request.get(url)).ok()).toBe(true);
});
