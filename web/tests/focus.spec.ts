/** What has the focus is never hidden below the bars that stay at the edges of a phone. */
import type { Page } from '@playwright/test';
import { eventWith, expect, test } from './fan';

// As on a desktop that is enlarged to 400 %.
test.use({ viewport: { width: 320, height: 480 } });

const STOPS_MAX = 60;

/** Goes through a page by Tab or Shift+Tab; tells the stops that nothing can be seen of. */
async function hiddenStops(page: Page, key: 'Tab' | 'Shift+Tab'): Promise<string[]> {
  const hidden: string[] = [];
  for (let stop = 0; stop < STOPS_MAX; stop++) {
    await page.keyboard.press(key);
    const found = await page.evaluate(() => {
      const focused = document.activeElement;
      if (!focused || focused === document.body) return { name: '', isSeen: true };
      const { left, top, width, height } = focused.getBoundingClientRect();
      const points = [0.15, 0.5, 0.85].map((share) => [left + width / 2, top + height * share]);
      const isSeen = points.some(([x, y]) => {
        const there = document.elementFromPoint(x ?? 0, y ?? 0);
        return there !== null && (focused.contains(there) || there.contains(focused));
      });
      return { name: focused.outerHTML.slice(0, 120), isSeen };
    });
    if (!found.isSeen) hidden.push(found.name);
  }
  return hidden;
}

/** The end of the page lies above the bars. */
async function isFooterFree(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    scrollTo(0, document.documentElement.scrollHeight);
    const { left, bottom, width } = [...document.querySelectorAll('footer a')]
      .at(-1)!
      .getBoundingClientRect();
    return document.elementFromPoint(left + width / 2, bottom - 8)?.closest('footer') !== null;
  });
}

test('on an event by Tab in both directions', async ({ page }) => {
  await page.goto(`/events/${await eventWith(page, 'on_sale')}`);
  await expect(page.getByRole('link', { name: /예매하기|대기열 입장/u })).toBeVisible();
  await expect(page.locator('main [aria-busy="true"]')).toHaveCount(0);
  expect(await hiddenStops(page, 'Tab')).toEqual([]);
  expect(await hiddenStops(page, 'Shift+Tab')).toEqual([]);
  expect(await isFooterFree(page)).toBe(true);

  // Without the room that is kept for the bars the test would find what they hide.
  await page.evaluate(() => {
    document.documentElement.style.scrollPadding = '0';
    document.body.style.paddingBottom = '0';
  });
  expect((await hiddenStops(page, 'Tab')).length).toBeGreaterThan(0);
  expect(await isFooterFree(page)).toBe(false);
});
