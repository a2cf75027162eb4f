import { readFileSync } from 'node:fs';
import type { Page } from '@playwright/test';
import { expect, expectAccessible, registerFan, test, type Account } from './fan';
import { linkTo } from './mailbox';

const NEW_PASSWORD = 'another long secret';

async function logIn(page: Page, account: Account, password = account.password) {
  await page.goto('/login');
  await page.getByLabel('이메일').fill(account.email);
  await page.getByLabel('비밀번호').fill(password);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('button', { name: account.name })).toBeVisible();
}

test.describe('the link to verify an address', () => {
  test.use({ allowed: /400/ });

  test('works once, by a click, and leaves the address bar', async ({ page }) => {
    const account = await registerFan('verify');
    await logIn(page, account);
    await page.goto('/my/account');
    await expect(page.getByText('아직 인증되지 않은 이메일 주소입니다')).toBeVisible();

    const link = await linkTo('verify', account.email);
    await page.goto(link);
    await expect(page).toHaveURL(/\/verify$/);
    await page.getByRole('button', { name: '네, 제 이메일입니다' }).click();
    await expect(page.getByText('이메일 주소가 인증되었습니다')).toBeVisible();
    await expectAccessible(page);
    await page.goto('/my/account');
    await expect(page.getByText('인증된 이메일 주소입니다.')).toBeVisible();

    await page.goto(link);
    await page.getByRole('button', { name: '네, 제 이메일입니다' }).click();
    await expect(page.getByRole('alert')).toContainText('이미 사용되었거나 만료된 링크입니다');
    await expectAccessible(page);
  });
});

test('a forgotten password is replaced by the link of a mail', async ({ page, browser }) => {
  const account = await registerFan('forgot');
  const elsewhere = await (await browser.newContext()).newPage();
  await logIn(elsewhere, account);

  await page.goto('/login');
  await page.getByRole('link', { name: '비밀번호를 잊으셨나요?' }).click();
  await page.getByLabel('이메일').fill(account.email);
  await page.getByRole('button', { name: '링크 받기' }).click();
  await expect(page.getByText('메일함을 확인해 주세요')).toBeVisible();
  await expectAccessible(page);

  await page.goto(await linkTo('reset', account.email));
  await page.getByLabel('새 비밀번호').fill(NEW_PASSWORD);
  await page.getByRole('button', { name: '비밀번호 바꾸기' }).click();
  await expect(page.getByText('비밀번호를 바꿨습니다')).toBeVisible();
  await expectAccessible(page);
  await logIn(page, account, NEW_PASSWORD);

  // The other device is logged out.
  await elsewhere.goto('/my/reservations');
  await expect(elsewhere.getByRole('dialog')).toContainText('다시 로그인해 주세요');
  await elsewhere.context().close();
});

test('an address without an account gets the same answer', async ({ page }) => {
  await page.goto('/forgot');
  await page.getByLabel('이메일').fill('nobody@example.com');
  await page.getByRole('button', { name: '링크 받기' }).click();
  await expect(page.getByText('메일함을 확인해 주세요')).toBeVisible();
});

test.describe('a link that does not work any more', () => {
  test.use({ allowed: /400/ });

  test('leads to a new one', async ({ page }) => {
    await page.goto(`/reset#${'0'.repeat(64)}`);
    await page.getByLabel('새 비밀번호').fill(NEW_PASSWORD);
    await page.getByRole('button', { name: '비밀번호 바꾸기' }).click();
    await expect(page.getByText('더 이상 사용할 수 없는 링크입니다')).toBeVisible();
    await expectAccessible(page);
    await page.getByRole('link', { name: '비밀번호를 잊으셨나요?' }).click();
    await expect(page).toHaveURL(/\/forgot$/);
  });
});

test('devices are listed and logged out one by one', async ({ page, browser }) => {
  const account = await registerFan('devices');
  const phone = await browser.newContext({
    userAgent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1',
  });
  await logIn(await phone.newPage(), account);
  await logIn(page, account);
  await page.goto('/my/account');
  await expect(page.getByText('Safari · iPhone').first()).toBeVisible();
  await expect(page.getByText('이 기기', { exact: true })).toHaveCount(1);
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Safari · iPhone 로그아웃' }).click();
  await expect(page.getByText('해당 기기에서 로그아웃했습니다.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Safari · iPhone 로그아웃' })).toHaveCount(0);
  await phone.close();
});

test('a fan saves all of their own data', async ({ page }) => {
  const account = await registerFan('export');
  await logIn(page, account);
  await page.goto('/my/account');
  const section = page.locator('section', { hasText: '저장된 내 모든 정보를' });
  await section.getByLabel('현재 비밀번호').fill(account.password);
  const download = page.waitForEvent('download');
  await section.getByRole('button', { name: '내 데이터 받기' }).click();
  const file = await (await download).path();
  const copy = JSON.parse(readFileSync(file, 'utf8'));
  expect(copy.account.email).toBe(account.email);
  expect(copy.tickets.reservations).toEqual([]);
});

test.describe('whoever deletes the account with valid tickets', () => {
  test.use({ allowed: /409/ });

  test('is told what is lost first', async ({ page }) => {
    const account = await registerFan('leave');
    await logIn(page, account);
    let isTold = false;
    await page.route('**/api/auth/me', async (route) => {
      const request = route.request();
      if (request.method() !== 'DELETE' || isTold) return route.continue();
      isTold = true;
      const losses = [
        { kind: 'reservation', id: '1', title: '한강의 밤', number: 'R-7', time: null },
      ];
      const code = 'LOSSES_NOT_ACCEPTED';
      return route.fulfill({ status: 409, json: { error: '', code, losses, lossesName: 'x' } });
    });
    await page.goto('/my/account');
    await page.getByRole('button', { name: '회원 탈퇴' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('현재 비밀번호').fill(account.password);
    await dialog.getByRole('button', { name: '탈퇴하기' }).click();
    await expect(dialog.getByRole('alert')).toContainText('티켓: 한강의 밤');
    await expectAccessible(page);
    const accepted = page.waitForRequest(
      (request) => request.method() === 'DELETE' && request.url().endsWith('/api/auth/me'),
    );
    await dialog.getByRole('button', { name: '모두 포기하고 탈퇴하기' }).click();
    expect((await accepted).postDataJSON().acceptedLosses).toBe('x');
    await expect(page.getByText('탈퇴했습니다.')).toBeVisible();
  });
});

test('social buttons are there for configured providers only', async ({ page }) => {
  await page.goto('/login');
  await expect(page.locator('main form')).toBeVisible();
  await expect(page.getByText('Google로 계속하기')).toHaveCount(0);
  await page.route('**/api/auth/social', (route) =>
    route.fulfill({ json: { providers: ['google', 'naver'], googleButton: false } }),
  );
  await page.goto('/login?return=/events');
  const google = page.getByRole('link', { name: 'Google로 계속하기' });
  await expect(google).toHaveAttribute('href', /\/api\/auth\/social\/google\/start\?redirect=/);
  await expect(page.getByRole('link', { name: '네이버로 계속하기' })).toBeVisible();
  await expect(page.getByText('카카오로 계속하기')).toHaveCount(0);
  await expectAccessible(page);
});
