/** A booking fills the screen of a phone: nothing makes its page wider or longer than that. */
import type { Page } from '@playwright/test';
import { eventWith, expect, expectNoSidewaysScroll, logIn, registerFan, test } from './fan';

test.use({ viewport: { width: 360, height: 740 } });

async function expectOneScreen(page: Page): Promise<void> {
  await expectNoSidewaysScroll(page);
  const [content, screen] = await page.evaluate(() => [
    document.documentElement.scrollHeight,
    document.documentElement.clientHeight,
  ]);
  expect(content).toBeLessThanOrEqual(screen ?? 0);
}

test('seats that are chosen in the list', async ({ page }) => {
  await logIn(page, await registerFan('overflow'));
  await page.goto(`/events/${await eventWith(page, 'on_sale')}/seats`);
  await page.getByRole('button', { name: '목록' }).click();
  await expectOneScreen(page);
  await page.locator('.section:not(:disabled)').first().click();
  for (const seat of [0, 1]) await page.locator('.seat').nth(seat).click();
  await expect(page.locator('.chosen li')).toHaveCount(2);
  await expectOneScreen(page);

  // What screen readers are told lies in the lists; were it not kept there, the page would grow.
  await page.evaluate(() => {
    for (const one of document.querySelectorAll<HTMLElement>('.chosen, .list'))
      one.style.position = 'static';
  });
  await expect(expectOneScreen(page)).rejects.toThrow();
});
