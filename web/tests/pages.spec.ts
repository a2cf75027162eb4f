import type { Page } from '@playwright/test';
import {
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  expectOneLanguage,
  expectStill,
  test,
} from './fan';
import { PAGES } from './fanPages';

const LOOKS = [
  {
    name: 'Korean, phone',
    lang: 'ko',
    use: { locale: 'ko-KR', viewport: { width: 360, height: 740 } },
  },
  {
    name: 'English, desktop, dark',
    lang: 'en',
    use: { locale: 'en-US', viewport: { width: 1280, height: 900 }, colorScheme: 'dark' },
  },
] as const;

for (const look of LOOKS) {
  test.describe(look.name, () => {
    test.use(look.use);
    for (const { name, path, ready, fan } of PAGES) {
      const check = async (page: Page) => {
        await page.goto(await path(page));
        await expect(page.locator(`main ${ready}`).first()).toBeVisible();
        await expect(page.locator('main [aria-busy="true"]')).toHaveCount(0);
        await expect(page.locator('html')).toHaveAttribute('lang', look.lang);
        await expect(page).toHaveTitle(/우르르|URR/);
        await expectStill(page);
        await expectNoSidewaysScroll(page);
        await expectOneLanguage(page, look.lang);
        await expectAccessible(page);
      };
      if (fan) test(name, async ({ fanPage }) => check(fanPage));
      else test(name, async ({ page }) => check(page));
    }
  });
}
