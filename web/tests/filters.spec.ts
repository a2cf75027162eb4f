/** Lists that are looked through by their address: events by artist and month, and wrong addresses. */
import { expect, expectAccessible, expectNoSidewaysScroll, firstArtist, test } from './fan';

test.use({ viewport: { width: 360, height: 740 } });

test('events of one artist', async ({ page }) => {
  const id = await firstArtist(page);
  const { events } = await (await page.request.get(`/api/events?artistId=${id}&limit=100`)).json();
  await page.goto('/events?status=all');
  // On a phone the events come first.
  await expect(page.getByLabel('아티스트')).toBeHidden();
  await page.getByRole('button', { name: '필터', exact: true }).click();
  await page.getByLabel('아티스트').selectOption(id);
  await expect(page).toHaveURL(new RegExp(`artist=${id}`, 'u'));
  await expect(page.getByText(`공연 ${events.length}개`)).toBeVisible();
  await expect(page.locator('article h3')).toHaveCount(events.length);
  await expectNoSidewaysScroll(page);
  await expectAccessible(page);
  // What is filtered is said, also where the filters are closed.
  await page.reload();
  await expect(page.getByRole('button', { name: '필터 1개 적용' })).toHaveAttribute(
    'aria-expanded',
    'false',
  );
});

test('an address with dates that no month has shows the list', async ({ page }) => {
  await page.goto('/events?to=2026-99-99&from=2026-02-30&artist=x&page=-3&status=on_sale');
  await expect(page.locator('article h3').first()).toBeVisible();
});

test('a month with more events than one answer holds is shown whole', async ({ page }) => {
  const { events } = await (await page.request.get('/api/events?limit=1')).json();
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route('**/api/events?*', async (route) => {
    await held;
    const number = Number(new URL(route.request().url()).searchParams.get('page') ?? '1');
    const pagination = { page: number, limit: 100, total: 2, totalPages: 2 };
    const one = { ...events[0], id: `${number}`, title: `${number}쪽의 공연` };
    await route.fulfill({
      json: { events: [{ ...one, startsAt: '2026-12-07T19:30:00+09:00' }], pagination },
    });
  });
  await page.goto('/events?view=calendar&status=all&month=2026-12');
  await expect(page.locator('main .skeleton').first()).toBeVisible();
  release();
  await expect(page.getByRole('link', { name: /1쪽의 공연/u })).toBeVisible();
  await expect(page.getByRole('link', { name: /2쪽의 공연/u })).toBeVisible();
});
