/** The terms: what a fan agrees to can be read before, at the time, and later. */
import {
  changeAnswer,
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  logInAt,
  registerFan,
  test,
} from './fan';
import { runProgram } from './program';

test('at the sign-up every text can be read before it is agreed to', async ({ page, request }) => {
  await page.goto('/register');
  await page.getByRole('button', { name: '개인정보 수집 및 이용 보기' }).focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: '개인정보 수집 및 이용' });
  const headers = { 'accept-language': 'ko' };
  const { text } = await (await request.get('/api/auth/terms/PRIVACY', { headers })).json();
  const headings = [...text.matchAll(/^# (.*)$/gm)].map((match) => match[1]);
  await expect(dialog.getByRole('heading', { level: 3 })).toHaveText(headings);
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await expect(dialog).toBeHidden();
  await expect(page.getByRole('button', { name: '개인정보 수집 및 이용 보기' })).toBeFocused();
  // Reading is not agreeing.
  await expect(
    page.getByLabel('개인정보 수집 및 이용', { exact: false }).first(),
  ).not.toBeChecked();
  await expect(page.getByRole('button', { name: '다음' })).toBeDisabled();
});

test.describe('a new version', () => {
  test.use({ allowed: /400/, serviceWorkers: 'block' });

  test('that comes into force during the sign-up must be agreed to itself', async ({ page }) => {
    type Terms = { terms: { version: string }[] };
    await page.route('**/api/auth/terms', (route) =>
      changeAnswer<Terms>(route, ({ terms }) => ({
        terms: terms.map((one) => ({ ...one, version: '2020-01' })),
      })),
    );
    await page.goto('/register');
    await page.getByLabel('모두 동의합니다').check();
    await page.getByRole('button', { name: '다음' }).click();
    await page.getByLabel('이름').fill('이강변');
    await page.getByLabel('이메일').fill(`outdated.${Date.now()}@example.com`);
    await page.getByLabel('비밀번호', { exact: true }).fill('a long enough secret');
    await page.unroute('**/api/auth/terms');
    await page.getByRole('button', { name: '가입하기' }).click();
    await expect(page.getByRole('alert')).toContainText('약관이 변경되었습니다');
    await expect(page.getByRole('button', { name: '다음' })).toBeDisabled();
    await expectAccessible(page);

    await page.getByLabel('모두 동의합니다').check();
    await page.getByRole('button', { name: '다음' }).click();
    await expect(page.getByLabel('이름')).toHaveValue('이강변');
    await page.getByRole('button', { name: '가입하기' }).click();
    await expect(page.getByRole('button', { name: '계속하기' })).toBeVisible();
  });

  test('is shown to those who agreed to the old one, until they agree', async ({ page }) => {
    const program = await runProgram();
    try {
      const account = await registerFan('agreed', program.url);
      await program.restart({ URR_AUTH_PRIVACY_TERMS_VERSION: '2031-07' });
      await logInAt(page, program.url, account);
      await page.goto(`${program.url}/my/account`);
      const notice = page.locator('.notice').filter({ hasText: '2031-07판' });
      await expect(notice.getByRole('listitem')).toHaveCount(1);
      await expect(notice.getByRole('link', { name: '개인정보 수집 및 이용' })).toBeVisible();
      await expectAccessible(page);
      await notice.getByRole('button').click();
      await expect(notice).toHaveCount(0);
      await page.reload();
      await expect(page.getByLabel('이름')).toBeVisible();
      await expect(notice).toHaveCount(0);
    } finally {
      await program.stop();
    }
  });
});

test('the page shows what the server says, as text', async ({ page }) => {
  const text = '# 우리 규칙\n<b>굵은</b> 글자는 없습니다.\n\n- 하나\n- 둘';
  await page.route('**/api/auth/terms/SERVICE', (route) =>
    changeAnswer(route, (answer) => ({ ...answer, version: '2031-07', text, isExample: false })),
  );
  await page.goto('/terms/service');
  await expect(page.getByRole('heading', { level: 2, name: '우리 규칙' })).toBeVisible();
  await expect(page.getByText('<b>굵은</b> 글자는 없습니다.')).toBeVisible();
  await expect(page.locator('article li')).toHaveText(['하나', '둘']);
  await expect(page.getByText('2031-07판')).toBeVisible();
});

test('they are linked below every page and on the account page', async ({ fanPage: page }) => {
  await page.goto('/my/account');
  await page.locator('main').getByRole('link', { name: '보기', exact: true }).click();
  await expect(page).toHaveURL(/\/terms$/);
  await page
    .locator('main')
    .getByRole('link', { name: /서비스 이용약관/ })
    .click();
  await expect(page.getByRole('heading', { level: 1, name: '서비스 이용약관' })).toBeVisible();
  await expect(page.locator('article')).toContainText('예시입니다');
  await page.locator('footer').getByRole('link', { name: '개인정보' }).click();
  await expect(
    page.getByRole('heading', { level: 1, name: '개인정보 수집 및 이용' }),
  ).toBeVisible();
});

test('an earlier version has an address', async ({ page, request }) => {
  const { terms } = await (await request.get('/api/auth/terms')).json();
  await page.goto(`/terms/service?version=${terms[0].version}`);
  await expect(page.locator('article')).toContainText(`${terms[0].version}판`);
});

test.describe('terms that do not exist', () => {
  test.use({ allowed: /404/ });

  test('are said not to', async ({ page }) => {
    for (const path of ['/terms/cookies', '/terms/service?version=1999-01']) {
      await page.goto(path);
      await expect(page.getByRole('heading', { name: '약관을 찾을 수 없습니다' })).toBeVisible();
      await page.locator('main').getByRole('link', { name: '약관', exact: true }).last().click();
      await expect(page).toHaveURL(/\/terms$/);
    }
  });
});

test.describe('enlarged', () => {
  // 1280 pixels at 400 %.
  test.use({ viewport: { width: 320, height: 640 } });

  test('a text needs no sideways scrolling', async ({ page }) => {
    await page.goto('/terms/service');
    await expect(page.locator('article')).toBeVisible();
    await expectNoSidewaysScroll(page);
  });
});
