/** Who sees the organisers' pages, and their menu on a desktop and on a phone. */
import { expectGoodPage, pageOf, registerWorker } from './admin';
import { expect, logIn, registerFan, test } from './fan';

test.use({ accountOf: 'adminshell' });

test('nobody is asked to log in, and comes back', async ({ page }) => {
  const account = await registerWorker('organiser');
  await page.goto('/admin/events?status=upcoming');
  await page.getByRole('main').getByRole('link', { name: '로그인' }).click();
  await page.getByLabel('이메일').fill(account.email);
  await page.getByLabel('비밀번호').fill(account.password);
  await page.getByRole('main').getByRole('button', { name: '로그인', exact: true }).click();
  await expect(page).toHaveURL(/\/admin\/events\?status=upcoming$/);
  await expect(page.getByRole('heading', { level: 1, name: '공연 관리' })).toBeVisible();
});

test('a fan is told that the pages are not for them, and has no link to them', async ({
  fanPage: page,
}) => {
  await page.goto('/admin/payments');
  await expect(page.getByRole('heading', { name: '볼 수 없는 페이지입니다' })).toBeVisible();
  await expect(page.getByRole('navigation', { name: '운영 메뉴' })).toHaveCount(0);
  await expectGoodPage(page);
  await page.locator('[popovertarget="account-menu"]').click();
  await expect(page.getByRole('link', { name: '운영 화면' })).toHaveCount(0);
});

test('each role sees its own entries and cannot open others', async ({ browser }) => {
  test.slow();
  const seen = {
    organiser: { has: '예매', hasNot: '사용자', closed: '/admin/users' },
    support: { has: '메일', hasNot: '작업 기록', closed: '/admin/log' },
  } as const;
  for (const [role, { has, hasNot, closed }] of Object.entries(seen)) {
    const account = await registerWorker(role as 'organiser' | 'support');
    const page = await pageOf(browser, account, { viewport: { width: 1280, height: 800 } });
    await page.goto('/');
    await page.locator('[popovertarget="account-menu"]').click();
    await page.getByRole('link', { name: '운영 화면' }).click();
    const menu = page.getByRole('navigation', { name: '운영 메뉴' });
    await expect(menu.getByRole('link', { name: has, exact: true })).toBeVisible();
    await expect(menu.getByRole('link', { name: hasNot, exact: true })).toHaveCount(0);
    await page.goto(closed);
    await expect(page.getByRole('heading', { name: '볼 수 없는 페이지입니다' })).toBeVisible();
    await page.context().close();
  }
});

test('on a phone the menu is a bar and a sheet, by keyboard too', async ({ browser }) => {
  const account = await registerWorker('admin');
  const page = await pageOf(browser, account, { viewport: { width: 360, height: 740 } });
  await page.goto('/admin/events');
  const more = page.getByRole('button', { name: '전체' });
  await more.focus();
  await page.keyboard.press('Enter');
  const menu = page.getByRole('navigation', { name: '운영 메뉴' });
  await expect(menu).toBeVisible();
  await expectGoodPage(page);
  await page.keyboard.press('Escape');
  await expect(menu).toBeHidden();
  await page.keyboard.press('Enter');
  await menu.getByRole('link', { name: '작업 기록' }).click();
  await expect(page).toHaveURL(/\/admin\/log$/);
  await expect(menu).toBeHidden();
  await page.context().close();
});

test('when the role is taken away, the server refuses and the page says so', async ({
  browser,
}) => {
  const account = await registerFan('former');
  const page = await pageOf(browser, account);
  // The browser still believes in a role that the account does not have.
  await page.addInitScript(() => {
    const stored = JSON.parse(localStorage.getItem('urr.session') ?? 'null');
    if (!stored) return;
    stored.user.role = 'admin';
    localStorage.setItem('urr.session', JSON.stringify(stored));
  });
  await page.goto('/admin/users');
  await expect(page.getByRole('alert')).toBeVisible();
  await page.context().close();
});

test.describe('in English', () => {
  test.use({ locale: 'en-GB' });

  test('the frame is English', async ({ page }) => {
    await logIn(page, await registerWorker('admin'));
    await page.goto('/admin');
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await expectGoodPage(page, 'en');
  });
});
