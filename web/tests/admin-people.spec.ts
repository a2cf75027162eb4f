/** Accounts, posts, news, mails and the log. */
import {
  adminApi,
  answerOf,
  apiOf,
  createArtist,
  createPlace,
  createStanding,
  expectGoodPage,
  pageOf,
  registerWorker,
} from './admin';
import { dialogAtRest, expect, join, logIn, otherFan, registerFan, test } from './fan';
import { unique } from './organiser';

test.use({ accountOf: 'adminpeople' });

test('an administrator finds an account, changes its role, and suspends it', async ({ page }) => {
  test.slow();
  const account = await registerFan('member');
  await logIn(page, await registerWorker('admin', 'personnel'));
  await page.goto('/admin/users');
  await page.getByLabel('사용자 검색').fill(account.email);
  await page.keyboard.press('Enter');
  const table = page.getByRole('table');
  await expect(table.getByRole('row')).toHaveCount(2);
  await table.getByRole('link', { name: account.name }).click();
  await page.getByRole('button', { name: '역할 바꾸기' }).click();
  await dialogAtRest(page);
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('역할').selectOption('staff');
  await expectGoodPage(page);
  await dialog.getByRole('button', { name: '역할 바꾸기' }).click();
  await expect(page.getByText('입장 확인 담당자').first()).toBeVisible();

  await page.getByRole('button', { name: '이용 정지' }).click();
  await dialogAtRest(page);
  const confirm = dialog.getByRole('button', { name: '이용 정지' });
  await dialog.getByLabel('사유').fill('부정 예매');
  await expect(confirm).toBeDisabled();
  await dialog.getByLabel(`계속하려면 입력: ${account.email}`).fill(account.email);
  await confirm.click();
  await expect(page.getByRole('button', { name: '이용 정지 해제' })).toBeVisible();
  const api = await adminApi();
  const refused = await api.post('/api/auth/login', {
    data: { email: account.email, password: account.password },
  });
  expect(refused.ok()).toBe(false);

  await page.getByRole('button', { name: '이용 정지 해제' }).click();
  await dialogAtRest(page);
  await dialog.getByLabel('사유').fill('오해');
  await dialog.getByRole('button', { name: '이용 정지 해제' }).click();
  await expect(page.getByRole('button', { name: '이용 정지', exact: true })).toBeVisible();
  await apiOf(account);
  await page.goto('/admin/log?service=auth');
  await expect(page.getByRole('table').getByRole('row').nth(3)).toBeVisible();
  await expectGoodPage(page);
});

test('support finds accounts and mails, but cannot open an account', async ({ page }) => {
  const account = await registerFan('asked');
  await logIn(page, await registerWorker('support', 'helper'));
  await page.goto(`/admin/users?q=${encodeURIComponent(account.email)}`);
  await expect(page.getByRole('table').getByText(account.email)).toBeVisible();
  await expect(page.getByRole('table').getByRole('link')).toHaveCount(0);
  await page.goto('/admin/mails');
  await expect(page.getByRole('heading', { level: 1, name: '메일' })).toBeVisible();
  await page.getByLabel('종류').selectOption('email_verification');
  await page.getByRole('table').getByRole('link').first().click();
  await expect(page.getByRole('heading', { level: 1, name: '이메일 인증' })).toBeVisible();
  await expectGoodPage(page);
});

test('a moderator hides a reported post, and fans no longer see it', async ({ page }) => {
  test.slow();
  const admin = await adminApi();
  const [artist, { venueId }] = [await createArtist(admin), await createPlace(admin)];
  const organiser = await registerWorker('organiser', 'moderator');
  const api = await apiOf(organiser);
  await createStanding(api, venueId, { artistId: artist.id });
  const author = await otherFan('author');
  await join(author, artist.id);
  const title = unique('팝니다');
  const { post } = await answerOf(
    author.post('/api/community/posts', {
      data: { artistId: artist.id, title, content: '웃돈 받고 팝니다' },
    }),
  );
  const reader = await otherFan('reporter');
  await answerOf(
    reader.post(`/api/community/posts/${post.id}/reports`, {
      data: { reason: 'resale', note: '암표예요' },
    }),
  );
  await logIn(page, organiser);
  await expect(async () => {
    await page.goto(`/admin/moderation?artistId=${artist.id}`);
    await expect(page.getByRole('heading', { name: title })).toBeVisible({ timeout: 3_000 });
  }).toPass({ timeout: 20_000 });
  await expectGoodPage(page);
  await page.getByRole('button', { name: '숨기기' }).click();
  await dialogAtRest(page);
  await expectGoodPage(page);
  await page.getByRole('dialog').getByRole('button', { name: '숨기기' }).click();
  await expect(page.getByText('숨겼습니다.')).toBeVisible();
  expect((await reader.get(`/api/community/posts/${post.id}`)).status()).toBe(404);

  // Another organiser does not see the report.
  await page.context().clearCookies();
  const other = await registerWorker('organiser', 'elsewhere');
  const strange = await apiOf(other);
  const { reports } = await answerOf(
    strange.get(`/api/admin/community/reports?open=false&artistId=${artist.id}`),
  );
  expect(reports).toEqual([]);
});

test('an organiser publishes news of an artist, and changes it', async ({ page }) => {
  const admin = await adminApi();
  const [artist, { venueId }] = [await createArtist(admin), await createPlace(admin)];
  const organiser = await registerWorker('organiser', 'writer');
  await createStanding(await apiOf(organiser), venueId, { artistId: artist.id });
  await logIn(page, organiser);
  const title = unique('새 소식');
  await page.goto('/admin/news/new');
  await page.getByLabel('아티스트').selectOption(artist.id);
  await page.getByLabel('제목').fill(title);
  await page.getByLabel('내용').fill('곧 만나요.');
  await page.getByRole('button', { name: '올리기' }).click();
  await expect(page).toHaveURL(/\/admin\/news\/[0-9a-f-]{36}$/);
  await page.getByLabel('내용').fill('다음 주에 만나요.');
  await page.getByRole('button', { name: '저장' }).click();
  await expect(page.getByText('저장했습니다.')).toBeVisible();
  await expectGoodPage(page);
  await page.goto(page.url().replace('/admin', ''));
  await expect(page.getByText('다음 주에 만나요.')).toBeVisible();
});

for (const [locale, tag] of [
  ['ko', 'ko-KR'],
  ['en', 'en-GB'],
] as const) {
  test(`the pages of people and the system are good at 360 pixels: ${locale}`, async ({
    browser,
  }) => {
    test.slow();
    const account = await registerWorker('admin', 'narrowadmin');
    const page = await pageOf(browser, account, {
      locale: tag,
      viewport: { width: 360, height: 740 },
    });
    for (const path of [
      // The name of the first administrator is an English word.
      `users?q=${encodeURIComponent(account.email)}`,
      `users/${account.id}`,
      'moderation',
      'moderation/posts',
      'news',
      'news/new',
      'mails',
      'log',
    ]) {
      await page.goto(`/admin/${path}`);
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
      await page.waitForLoadState('networkidle');
      await expectGoodPage(page, locale);
    }
    await page.context().close();
  });
}
