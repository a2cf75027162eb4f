/** What is typed and chosen before the scripts of a page have arrived. */
import type { Page } from '@playwright/test';
import { expect, test } from './fan';

/** Opens a page whose scripts arrive when the returned function is called. */
async function openWithoutScripts(page: Page, path: string): Promise<() => void> {
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  await page.route(/\/_app\/.*\.js$/, async (route) => {
    await released;
    await route.continue();
  });
  await page.goto(path, { waitUntil: 'commit' });
  return release;
}

test.use({ serviceWorkers: 'block' });

test('a choice is not lost', async ({ page }) => {
  const release = await openWithoutScripts(page, '/events');
  await page.getByLabel('정렬').selectOption('newest');
  await expect(page).toHaveURL(/\/events$/);
  release();
  await expect(page).toHaveURL(/sort=newest/);
  await expect(page.getByLabel('정렬')).toHaveValue('newest');
});

test('what was typed is kept, and can be sent', async ({ page, account }) => {
  const release = await openWithoutScripts(page, '/login');
  await page.getByLabel('이메일').fill(account.email);
  await page.getByLabel('비밀번호', { exact: true }).fill(account.password);
  // Enter sends nothing yet: neither a request nor a password in an address.
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/login$/);
  release();
  await page.locator('main').getByRole('button', { name: '로그인' }).click();
  await expect(page).toHaveURL(/\/$/);
});

test('a search that was sent is carried out', async ({ page }) => {
  const release = await openWithoutScripts(page, '/search');
  await page.getByRole('searchbox').fill('한강');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/search$/);
  release();
  await expect(page.getByRole('link', { name: /한강/ }).first()).toBeVisible();
  await expect(page.getByRole('searchbox')).toHaveValue('한강');
});
