/** A refused form says what is wrong and leads there. */
import { expect, test } from './fan';

test.describe('a refusal', () => {
  test.use({ allowed: /40[019]/ });

  test('of a login leads to the password, which is empty', async ({ page, account }) => {
    await page.goto('/login');
    await page.getByLabel('이메일').fill(account.email);
    await page.getByLabel('비밀번호').fill('not the password');
    await page.locator('main').getByRole('button', { name: '로그인' }).click();
    await expect(page.getByRole('alert')).toContainText('맞지 않습니다');
    await expect(page.getByLabel('비밀번호')).toBeFocused();
    await expect(page.getByLabel('비밀번호')).toHaveValue('');
  });

  test('of a registration leads to what is wrong, and keeps the rest', async ({ page }) => {
    await page.goto('/register');
    await page.getByLabel('모두 동의합니다').check();
    await page.getByRole('button', { name: '다음' }).click();
    await page.getByLabel('이름').fill('이강변');
    await page.getByLabel('이메일').fill('no address');
    await page.getByLabel('비밀번호', { exact: true }).fill('a long enough secret');
    await page.getByRole('button', { name: '가입하기' }).click();
    await expect(page.getByLabel('이메일')).toBeFocused();
    await expect(page.getByLabel('이메일')).toHaveAttribute('aria-invalid', 'true');
    await expect(page.getByLabel('이름')).toHaveValue('이강변');
  });
});
