/** Logging in on a way round leads back to where the fan was. */
import { expect, test } from './fan';

test('who has an account after all does not lose the place', async ({ page, account }) => {
  await page.goto('/my/memberships');
  await page.getByRole('link', { name: '회원가입' }).click();
  await page.locator('main').getByRole('link', { name: '로그인' }).click();
  await page.getByLabel('이메일').fill(account.email);
  await page.getByLabel('비밀번호').fill(account.password);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/my\/memberships$/u);
});

test.describe('a session that has ended', () => {
  test.use({ allowed: /401/, serviceWorkers: 'block' });

  test('can go on by a social login, which comes back', async ({ fanPage: page, context }) => {
    await page.route('**/api/auth/social', (route) =>
      route.fulfill({ json: { providers: ['kakao'] } }),
    );
    await page.goto('/my/account');
    await expect(page.locator('main form').first()).toBeVisible();
    await context.clearCookies();
    await page.getByRole('button', { name: '저장' }).first().click();
    const social = page.getByRole('dialog').getByRole('link', { name: /카카오/u });
    const start = new URL((await social.getAttribute('href')) ?? '', 'http://urr.example');
    const login = new URL(start.searchParams.get('redirect') ?? '', 'http://urr.example');
    expect(login.searchParams.get('return')).toBe('/my/account');
  });
});
