import { adminApi, createArtist } from './admin';
import {
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  firstArtist,
  firstPost,
  otherFan,
  test,
} from './fan';

test.use({ accountOf: 'writer' });

/** Texts that run when they are taken for markup. */
const PAYLOADS = [
  '<script>document.title = "broken"</script>',
  '<img src=x onerror="document.title = \'broken\'">',
  '"><svg/onload=document.title=1>',
  'javascript:document.title=1',
  '[a](javascript:document.title=1)',
  '{document.title = "broken"}',
  '</title><script>document.title = 1</script>',
];

test('a fan writes, changes, comments and deletes', async ({ fanPage: page }) => {
  await page.goto(`/community/write?artist=${await firstArtist(page)}`);
  await page.getByLabel('제목').fill('어제 공연 후기');
  await page.getByLabel('내용').fill('좋았어요.\n자세히: https://urr.example/review.');
  await page.getByRole('button', { name: '등록' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('어제 공연 후기');
  const link = page.getByRole('link', { name: 'https://urr.example/review' });
  await expect(link).toHaveAttribute('rel', /nofollow.*noopener/u);

  await page.getByLabel('댓글 쓰기').fill('저도요!');
  await page.getByRole('button', { name: '등록' }).click();
  await expect(page.getByRole('listitem').filter({ hasText: '저도요!' })).toBeVisible();
  await page.getByRole('button', { name: '댓글 고치기' }).click();
  await page.getByLabel('댓글 내용').fill('저도 갔어요!');
  await expectAccessible(page);
  await page.getByRole('button', { name: '저장' }).click();
  const comment = page.getByRole('listitem').filter({ hasText: '저도 갔어요!' });
  await expect(comment.getByText('수정됨')).toBeVisible();
  await expect(page.getByText('저도요!')).toHaveCount(0);
  await page.getByRole('button', { name: '댓글 삭제' }).click();
  await expectAccessible(page);
  await page.getByRole('dialog').getByRole('button', { name: '삭제' }).click();
  await expect(page.getByText('아직 댓글이 없습니다.')).toBeVisible();

  await page.getByRole('link', { name: '고치기' }).click();
  await page.getByLabel('제목').fill('고친 후기');
  await page.getByRole('button', { name: '저장' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('고친 후기');
  await expect(page.getByText('수정됨')).toBeVisible();

  await page.getByRole('button', { name: '삭제' }).click();
  await page.getByRole('dialog').getByRole('button', { name: '삭제' }).click();
  await expect(page).toHaveURL(/\/community$/u);
  await expect(page.getByRole('link', { name: '고친 후기' })).toHaveCount(0);
});

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const GIF = Buffer.from('R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs=', 'base64');

test.describe('pictures', () => {
  test.use({ allowed: /415/ });

  test('a fan attaches pictures, says what they show, and takes one away', async ({
    fanPage: page,
  }) => {
    await page.goto(`/community/write?artist=${await firstArtist(page)}`);
    const files = page.getByLabel('사진', { exact: true });
    await files.setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: Buffer.from('no') });
    await expect(page.getByText('지원하는 이미지 파일이 아닙니다.')).toBeVisible();
    const large = Buffer.alloc(5 * 1024 * 1024 + 1);
    await files.setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: large });
    await expect(page.getByText('한 장은 5 MB까지 올릴 수 있습니다.')).toBeVisible();
    await files.setInputFiles([
      { name: '<img src=x>.png', mimeType: 'image/png', buffer: PNG },
      { name: 'b.gif', mimeType: 'image/gif', buffer: GIF },
    ]);
    await page.getByLabel('사진 1 설명').fill('푸른 조명');
    await page.getByLabel('사진 2 설명').fill('앙코르');
    await expectAccessible(page);
    await expectNoSidewaysScroll(page);
    await page.getByLabel('제목').fill('사진 있는 후기');
    await page.getByLabel('내용').fill('좋았어요.');
    await page.getByRole('button', { name: '등록' }).click();
    await expect(page.getByRole('img', { name: '푸른 조명' })).toBeVisible();
    await expect(page.getByRole('img', { name: '앙코르' })).toBeVisible();
    await expectAccessible(page);

    await page.getByRole('link', { name: '고치기' }).click();
    await page.getByRole('button', { name: '사진 1 빼기' }).click();
    await page.getByRole('button', { name: '저장' }).click();
    await expect(page.getByText('수정됨')).toBeVisible();
    await expect(page.locator('article img')).toHaveCount(1);
    await expect(page.getByRole('img', { name: '앙코르' })).toBeVisible();
    await page.getByRole('button', { name: '삭제' }).click();
    await page.getByRole('dialog').getByRole('button', { name: '삭제' }).click();
    await expect(page).toHaveURL(/\/community$/u);
  });
});

test('titles are searched, and pinned posts stand above', async ({ page }) => {
  const api = await adminApi();
  const artist = await createArtist(api);
  const other = await otherFan('poster');
  const write = async (title: string) => {
    const data = { artistId: artist.id, title, content: '내용' };
    const written = await other.post('/api/community/posts', { data });
    return (await written.json()).post.id as string;
  };
  // A new artist is not known everywhere at once.
  let pinned = '';
  await expect(async () => {
    pinned = await write('고정할 글');
  }).toPass({ timeout: 15_000 });
  await write('나중에 쓴 글');
  const path = `/api/admin/community/posts/${pinned}/pin`;
  const answer = await api.put(path, { data: { pinned: true } });
  expect(answer.ok(), await answer.text()).toBe(true);
  await Promise.all([api.dispose(), other.dispose()]);
  await page.goto(`/community?artist=${artist.id}`);
  const titles = page.locator('main li .title');
  await expect(titles).toHaveText([/고정.*고정할 글/, /나중에 쓴 글/]);
  await page.getByLabel('제목 검색').fill('나중');
  await page.keyboard.press('Enter');
  await expect(titles).toHaveText([/나중에 쓴 글/]);
  await expectAccessible(page);
  await page.getByLabel('제목 검색').fill('없는 말');
  await page.keyboard.press('Enter');
  await expect(page.getByText('‘없는 말’이(가) 들어간 제목이 없습니다')).toBeVisible();
});

test('a post of somebody else is reported', async ({ fanPage: page }) => {
  await page.goto(`/community/${await firstPost(page)}`);
  await page.getByRole('button', { name: '신고', exact: true }).click();
  await page.getByLabel('광고, 도배').check();
  await expectAccessible(page);
  await page.getByRole('dialog').getByRole('button', { name: '신고' }).click();
  await expect(page.getByText('신고했습니다.')).toBeVisible();
});

test('a comment of somebody else is reported, and a visitor is led to the login', async ({
  fanPage: page,
  browser,
}) => {
  const id = await firstPost(page);
  const other = await otherFan('commenter');
  const written = await other.post(`/api/community/posts/${id}/comments`, {
    data: { content: '저 자리 팝니다' },
  });
  expect(written.ok(), await written.text()).toBe(true);
  await other.dispose();
  await page.goto(`/community/${id}`);
  const comment = page.getByRole('listitem').filter({ hasText: '저 자리 팝니다' }).last();
  await comment.getByRole('button', { name: '댓글 신고' }).click();
  await page.getByLabel('암표 거래').check();
  await expectAccessible(page);
  const sent = page.waitForResponse(/\/comments\/[0-9a-f-]{36}\/reports$/);
  await page.getByRole('dialog').getByRole('button', { name: '신고' }).click();
  expect((await sent).ok()).toBe(true);
  await expect(page.getByText('신고했습니다.')).toBeVisible();

  const baseURL = process.env.URR_URL ?? '';
  const context = await browser.newContext({ baseURL, locale: 'ko-KR' });
  const visitor = await context.newPage();
  await visitor.goto(`/community/${id}`);
  await expect(visitor.getByRole('link', { name: '로그인하고 댓글 쓰기' })).toHaveAttribute(
    'href',
    `/login?return=${encodeURIComponent(`/community/${id}`)}`,
  );
  await expect(visitor.getByRole('button', { name: '댓글 신고' })).toHaveCount(0);
  await visitor.getByRole('link', { name: '글 목록' }).click();
  await expect(visitor).toHaveURL(/\/community$/);
  await context.close();
});

test('what looks like markup is text', async ({ fanPage: page }) => {
  const artistId = await firstArtist(page);
  for (const payload of PAYLOADS) {
    const response = await page.request.post('/api/community/posts', {
      data: { artistId, title: payload, content: payload },
      headers: { 'sec-fetch-site': 'same-origin' },
    });
    const { post } = await response.json();
    await page.goto(`/community/${post.id}`);
    await expect(page.getByRole('heading', { level: 1 })).toHaveText(payload);
    await expect(page.locator('article').getByText(payload)).toHaveCount(2);
    await expect(page).toHaveTitle(`${payload} · 우르르`);
    await expect(page.locator('article :is(script, svg, img)')).toHaveCount(0);
    await expect(page.locator('article a[href^="javascript"]')).toHaveCount(0);
  }
  await page.goto('/community');
  await expect(page.locator('main li').first()).toBeVisible();
  await expect(page.locator('main li :is(script, svg, img)')).toHaveCount(0);
});
