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

test('the site can be installed', async ({ page, context }) => {
  await page.goto('/');
  await page.evaluate(() => navigator.serviceWorker.ready);
  const client = await context.newCDPSession(page);
  const { installabilityErrors } = await client.send('Page.getInstallabilityErrors');
  // Windows that keep nothing, as those of tests, cannot install anything.
  expect(installabilityErrors.filter(({ errorId }) => errorId !== 'in-incognito')).toEqual([]);
  const manifest = await (await page.request.get('/manifest.webmanifest')).json();
  for (const { src } of manifest.icons) {
    const icon = await page.request.get(src);
    expect(icon.ok(), src).toBe(true);
    expect(icon.headers()['content-type']).toMatch(/^image\//);
  }
  for (const { url } of manifest.shortcuts) expect((await page.request.get(url)).ok()).toBe(true);
});
