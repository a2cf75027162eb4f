/**
 * Pages whose answers come late. What is seen meanwhile has the size of what comes, so that nothing
 * jumps. `npm run slow` walks the same pages over slow 3G.
 */
import type { Page } from '@playwright/test';
import { expect, layoutShift, LAYOUT_SHIFT_MAX, logIn, test } from './fan';
import { type FanPage, PAGES, pagesWithContent } from './fanPages';
import { verifiedFan } from './verifiedFan';

/** Later than the scripts, so that every page shows what it shows while it loads. */
const LATE_MS = 600;

test.use({ viewport: { width: 390, height: 844 }, serviceWorkers: 'block' });

async function late(page: Page): Promise<void> {
  // Streams are read piece by piece and cannot be held back as a whole.
  await page.route(/\/api\/(?!.*\/stream)/, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, LATE_MS));
    await route.continue().catch(() => undefined);
  });
}

/** Opens every page; tells those that jump. */
async function jumping(page: Page, pages: readonly FanPage[]): Promise<string[]> {
  const found: string[] = [];
  for (const { name, path, ready } of pages) {
    const address = await path(page);
    await page.goto('about:blank');
    await page.goto(address);
    const content = page.locator(`main :is(${ready})`).filter({ visible: true });
    await expect(content.first(), name).toBeVisible();
    await expect(page.locator('main :is([aria-busy="true"], .skeleton)'), name).toHaveCount(0);
    const shift = await layoutShift(page);
    if (shift > LAYOUT_SHIFT_MAX) found.push(`${name}: ${shift.toFixed(3)}`);
  }
  return found;
}

test('pages for everybody do not jump when answers are late', async ({ page }) => {
  test.slow();
  await late(page);
  const open = PAGES.filter(({ fan }) => !fan);
  expect(await jumping(page, open)).toEqual([]);
});

test('pages of a fan who has nothing yet do not jump when answers are late', async ({ page }) => {
  test.slow();
  await logIn(page, await verifiedFan('newcomer'));
  await late(page);
  const empty = PAGES.filter(({ fan }) => fan);
  expect(await jumping(page, empty)).toEqual([]);
});

test('pages of a fan who has something of everything do not jump', async ({ page }) => {
  test.slow();
  await logIn(page, await verifiedFan('regular'));
  const own = (await pagesWithContent(page)).filter(({ press }) => !press);
  await late(page);
  expect(await jumping(page, own)).toEqual([]);
});

test('a page that jumps is noticed', async ({ page }) => {
  await late(page);
  // What comes later than the list pushes it down.
  await page.addInitScript(() =>
    new MutationObserver((_, observer) => {
      if (!document.querySelector('main li h2')) return;
      observer.disconnect();
      const block = document.createElement('div');
      block.style.height = '300px';
      setTimeout(() => document.querySelector('main')?.prepend(block), 100);
    }).observe(document, { childList: true, subtree: true }),
  );
  const artists = PAGES.filter(({ name }) => name === 'artists');
  expect(await jumping(page, artists)).toHaveLength(1);
});
