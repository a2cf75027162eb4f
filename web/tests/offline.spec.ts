import { expect, test } from './fan';

test.use({ allowed: /INTERNET_DISCONNECTED|Failed to load resource/ });

test('without a network a visited page opens from its shell, another one says so', async ({
  page,
  context,
}) => {
  await page.goto('/help');
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.reload();
  await context.setOffline(true);

  await page.goto('/help');
  await expect(page.getByRole('heading', { name: '도움말', level: 1 })).toBeVisible();
  await page.goto('/artists');
  await expect(page.getByRole('heading', { name: '연결이 끊겼어요' })).toBeVisible();
});

test('prices and places are never kept', async ({ page }) => {
  await page.goto('/');
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.reload();
  await expect(page.locator('article h3').first()).toBeVisible();
  const kept = await page.evaluate(async () => {
    const names = await caches.keys();
    const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
    return requests.flat().map((request) => new URL(request.url).pathname);
  });
  expect(kept.length).toBeGreaterThan(5);
  expect(kept.filter((path) => path.startsWith('/api/'))).toEqual([]);
});
