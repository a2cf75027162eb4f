import { eventWith, expect, test } from './fan';

test('initial consonants find an event while typing', async ({ page }) => {
  await page.goto('/search');
  await page.getByRole('searchbox').pressSequentially('ㅎㄱ', { delay: 30 });
  await expect(page.getByRole('link', { name: /한강/ }).first()).toBeVisible();
  await expect(page).toHaveURL(/q=%E3%85%8E%E3%84%B1$/);
});

test('filters are in the address and survive reload and back', async ({ page }) => {
  await page.goto('/events');
  await page.getByRole('link', { name: '오픈 예정' }).click();
  await expect(page).toHaveURL(/status=upcoming/);
  await expect(page.locator('article').first()).toContainText('오픈 예정');
  await page.reload();
  await expect(page.locator('[aria-current="true"]').first()).toHaveText('오픈 예정');
  await page.locator('article a').first().click();
  await expect(page.locator('main h1')).toBeVisible();
  await page.goBack();
  await expect(page).toHaveURL(/status=upcoming/);
  await expect(page.locator('article h3').first()).toBeVisible();
});

test('the calendar moves by months', async ({ page }) => {
  await page.goto('/events?view=calendar&month=2026-12');
  await expect(page.getByRole('heading', { name: '2026년 12월' })).toBeVisible();
  await page.getByRole('link', { name: '다음 달' }).click();
  await expect(page.getByRole('heading', { name: '2027년 1월' })).toBeVisible();
});

test('the skip link leads past the header', async ({ page }) => {
  await page.goto('/help');
  await page.keyboard.press('Tab');
  await expect(page.getByRole('link', { name: '본문으로 건너뛰기' })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.locator('main')).toBeFocused();
});

test('language and theme stay chosen', async ({ page }) => {
  await page.goto('/help');
  await page.getByLabel('화면 테마').selectOption('dark');
  await page.getByLabel('언어').selectOption('en');
  await expect(page.getByRole('heading', { name: 'Help', level: 1 })).toBeVisible();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await page.goto('/artists');
  await expect(page.getByRole('heading', { name: 'Artists', level: 1 })).toBeVisible();
});

test('a countdown follows the server, not the clock of the device', async ({ page }) => {
  await page.addInitScript(() => {
    const now = Date.now.bind(Date);
    Date.now = () => now() + 3_600_000;
  });
  const id = await eventWith(page, 'upcoming');
  const { event } = await (await page.request.get(`/api/events/${id}`)).json();
  await page.goto(`/events/${id}`);
  await expect(page.getByRole('timer').first()).toBeVisible();
  await expect(async () => {
    const shown = await page.locator('[role="timer"] b').allTextContents();
    const [seconds = 0, minutes = 0, hours = 0, days = 0] = shown.map(Number).reverse();
    const left = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
    expect(Math.abs(left - (Date.parse(event.saleStartsAt) - Date.now()) / 1000)).toBeLessThan(5);
  }).toPass();
});

test('the opening of a sale can be put into a calendar', async ({ page }) => {
  // The one that opens last: its waiting room cannot be entered yet.
  const { events } = await (await page.request.get('/api/events?status=upcoming')).json();
  await page.goto(`/events/${events.at(-1).id}`);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: '캘린더에 추가' }).click();
  expect((await download).suggestedFilename()).toBe('urr-sale.ics');
});
