import { eventWith, expect, expectAccessible, tabTo, test } from './fan';

test('a fan signs up in steps, by keyboard alone', async ({ page }) => {
  await page.goto('/register');
  await tabTo(page, page.getByLabel('모두 동의합니다'));
  await page.keyboard.press('Space');
  await tabTo(page, page.getByRole('button', { name: '다음' }));
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 2 })).toBeFocused();
  await expectAccessible(page);

  await page.keyboard.press('Tab');
  await page.keyboard.type('박한강');
  await page.keyboard.press('Tab');
  await page.keyboard.type(`keyboard.${Date.now()}@example.com`);
  await page.keyboard.press('Tab');
  await page.keyboard.type('a long enough secret');
  await page.keyboard.press('Enter');

  await expect(page.getByText('박한강 님, 환영합니다')).toBeVisible({ timeout: 30_000 });
  await expect(page.getByText('3/3 단계')).toBeVisible();
  await expectAccessible(page);
  await tabTo(page, page.getByRole('button', { name: '계속하기' }));
  await page.keyboard.press('Enter');
  await expect(page.getByRole('button', { name: '박한강' })).toBeVisible();
});

test('the proof of work is done by a worker while the form is filled in', async ({ page }) => {
  await page.goto('/register');
  await page.getByLabel('모두 동의합니다').check();
  const working = page.waitForEvent('worker');
  await page.getByRole('button', { name: '다음' }).click();
  const worker = await working;
  expect(worker.url()).toContain('proofOfWork');
  await expect.poll(() => page.workers().length).toBe(0);

  await page.getByLabel('이름').fill('박한강');
  await page.getByLabel('이메일').fill(`worker.${Date.now()}@example.com`);
  await page.getByLabel('비밀번호', { exact: true }).fill('a long enough secret');
  const sent: string[] = [];
  page.on('request', (request) => sent.push(new URL(request.url()).pathname));
  await page.getByRole('button', { name: '가입하기' }).click();
  await expect(page.getByText('박한강 님, 환영합니다')).toBeVisible();
  // Pressing the button costs one request: neither a question nor a computation comes before it.
  expect(sent[0]).toBe('/api/auth/register');
  expect(sent).not.toContain('/api/auth/challenge');
});

test.describe('a refused sign-up', () => {
  test.use({ allowed: /409/ });

  test('tells it beside the field and keeps what was typed', async ({ page, account }) => {
    await page.goto('/register');
    await page.getByLabel('모두 동의합니다').check();
    await page.getByRole('button', { name: '다음' }).click();
    await page.getByLabel('이름').fill('박한강');
    await page.getByLabel('이메일').fill(account.email);
    await page.getByLabel('비밀번호', { exact: true }).fill('a long enough secret');
    await page.getByRole('button', { name: '가입하기' }).click();
    await expect(page.getByText('이 이메일로는 가입할 수 없습니다')).toBeVisible({
      timeout: 30_000,
    });
    await expect(page.getByLabel('이름')).toHaveValue('박한강');
    await expectAccessible(page);
  });
});

test('W-13 a login returns to where the fan was', async ({ page, account }) => {
  await page.goto('/my/account');
  await page.locator('main').getByRole('link', { name: '로그인' }).click();
  await page.getByLabel('이메일').fill(account.email);
  await page.getByLabel('비밀번호').fill(account.password);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/my\/account$/);
  await expect(page.locator('main').getByText(account.email)).toBeVisible();
});

test.describe('a wrong password', () => {
  test.use({ allowed: /401/ });

  test('is refused without saying what was wrong', async ({ page, account }) => {
    await page.goto('/login');
    await page.getByLabel('이메일').fill(account.email);
    await page.getByLabel('비밀번호').fill('not the password');
    await page.locator('main').getByRole('button', { name: '로그인' }).click();
    await expect(page.getByRole('alert')).toContainText('이메일 또는 비밀번호가 맞지 않습니다');
    await expect(page.getByLabel('이메일')).toHaveValue(account.email);
  });
});

test('another site cannot be the place to return to', async ({ page, account }) => {
  await page.goto('/login?return=https://example.com/');
  await page.getByLabel('이메일').fill(account.email);
  await page.getByLabel('비밀번호').fill(account.password);
  await page.keyboard.press('Enter');
  await expect(page.locator('.hero')).toBeVisible();
});

test('an expired access token is renewed without a refusal', async ({ fanPage: page }) => {
  await page.goto('/help');
  await page.evaluate(() => {
    const stored = JSON.parse(localStorage.getItem('urr.session') ?? '{}');
    localStorage.setItem(
      'urr.session',
      JSON.stringify({ ...stored, accessEndsAt: Date.now() - 1 }),
    );
  });
  const refreshed = page.waitForResponse('**/api/auth/refresh');
  await page.goto('/my/reservations');
  expect((await refreshed).status()).toBe(200);
  await expect(page.getByText('아직 예매한 공연이 없습니다')).toBeVisible();
});

test('two tabs renew an expired access token once', async ({ fanPage: page, context }) => {
  const other = await context.newPage();
  for (const tab of [page, other]) await tab.goto('/help');
  let renewals = 0;
  context.on('request', (request) => {
    if (request.url().endsWith('/api/auth/refresh')) renewals += 1;
  });
  await page.evaluate(() => {
    const stored = JSON.parse(localStorage.getItem('urr.session') ?? '{}');
    const expired = { ...stored, accessEndsAt: Date.now() - 1 };
    localStorage.setItem('urr.session', JSON.stringify(expired));
  });
  await Promise.all([page, other].map((tab) => tab.goto('/my/reservations')));
  for (const tab of [page, other])
    await expect(tab.getByText('아직 예매한 공연이 없습니다')).toBeVisible();
  expect(renewals).toBe(1);
});

test.describe('a session that has ended elsewhere', () => {
  test.use({ allowed: /401/ });

  test('lets the fan log in within the page and goes on', async ({
    fanPage: page,
    account,
    context,
  }) => {
    await page.goto('/my/account');
    await expect(page.locator('main form').first()).toBeVisible();
    await context.clearCookies();
    await page.getByLabel('이름').fill('이강변');
    await page.getByRole('button', { name: '저장' }).click();

    const dialog = page.getByRole('dialog');
    await expect(dialog).toContainText('다시 로그인해 주세요');
    await expectAccessible(page);
    await dialog.getByLabel('비밀번호').fill(account.password);
    await dialog.getByRole('button', { name: '로그인' }).click();
    await expect(page.getByText('저장했습니다.')).toBeVisible();
    await expect(page.getByLabel('이름')).toHaveValue('이강변');
  });
});

test('logging out in one tab logs out the other', async ({ fanPage: page, context }) => {
  await page.goto('/my/reservations');
  const other = await context.newPage();
  await other.goto('/help');
  await other.evaluate(() => localStorage.removeItem('urr.session'));
  await expect(page.getByRole('heading', { name: '로그인이 필요합니다' })).toBeVisible();
});

test('booking without a login leads through it to the waiting room', async ({ page }) => {
  const id = await eventWith(page, 'on_sale');
  await page.goto(`/events/${id}`);
  await page.getByRole('link', { name: /예매하기|대기열 입장/ }).click();
  await expect(page).toHaveURL(`/login?return=${encodeURIComponent(`/queue/${id}`)}`);
});
