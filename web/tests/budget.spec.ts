import type { Page } from '@playwright/test';
import { eventWith, expect, test } from './fan';

const KB = 1024;
const LAYOUT_SHIFT_MAX = 0.05;

interface Loaded {
  scripts: number;
  preloadedFonts: number;
  hosts: Set<string>;
}

async function load(page: Page, path: string): Promise<Loaded> {
  const loaded: Loaded = { scripts: 0, preloadedFonts: 0, hosts: new Set() };
  const sizes: Promise<void>[] = [];
  page.on('requestfinished', (request) => {
    const url = new URL(request.url());
    loaded.hosts.add(url.host);
    sizes.push(
      request.sizes().then(({ responseBodySize }) => {
        if (request.resourceType() === 'script') loaded.scripts += responseBodySize;
        if (/\/(text|digits|display)\.[^/]+\.woff2$/.test(url.pathname))
          loaded.preloadedFonts += responseBodySize;
      }),
    );
  });
  await page.goto(path);
  await page.waitForLoadState('networkidle');
  await Promise.all(sizes);
  return loaded;
}

async function layoutShift(page: Page): Promise<number> {
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

test.use({ viewport: { width: 360, height: 740 } });

test('home loads at most 70 KB of script and asks no other host', async ({ page, baseURL }) => {
  const loaded = await load(page, '/');
  expect(loaded.scripts).toBeGreaterThan(10 * KB);
  expect(loaded.scripts).toBeLessThanOrEqual(70 * KB);
  expect(loaded.preloadedFonts).toBeLessThanOrEqual(100 * KB);
  expect([...loaded.hosts]).toEqual([new URL(baseURL ?? '').host]);
  expect(await layoutShift(page)).toBeLessThanOrEqual(LAYOUT_SHIFT_MAX);
});

test('an event loads at most 80 KB of script', async ({ page }) => {
  const loaded = await load(page, `/events/${await eventWith(page, 'on_sale')}`);
  expect(loaded.scripts).toBeLessThanOrEqual(80 * KB);
  expect(await layoutShift(page)).toBeLessThanOrEqual(LAYOUT_SHIFT_MAX);
});

test('the data of an event are asked for once, before the scripts have run', async ({ page }) => {
  const id = await eventWith(page, 'on_sale');
  let asked = 0;
  page.on('request', (request) => {
    if (new URL(request.url()).pathname === `/api/events/${id}`) asked += 1;
  });
  await page.goto(`/events/${id}`);
  await expect(page.locator('main h1')).toBeVisible();
  expect(asked).toBe(1);
});
