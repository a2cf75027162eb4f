import { expect, expectAccessible, firstArtist, firstPost, test } from './fan';

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
  await expectAccessible(page);
  await page.getByRole('button', { name: '댓글 삭제' }).click();
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

test('a post of somebody else is reported', async ({ fanPage: page }) => {
  await page.goto(`/community/${await firstPost(page)}`);
  await page.getByRole('button', { name: '신고' }).click();
  await page.getByLabel('광고, 도배').check();
  await expectAccessible(page);
  await page.getByRole('dialog').getByRole('button', { name: '신고' }).click();
  await expect(page.getByText('신고했습니다.')).toBeVisible();
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
