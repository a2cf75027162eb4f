/** The whole way of a fan: from the account to the entrance, through a room that is really full. */
import type { Page } from '@playwright/test';
import {
  enter,
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  expectOneLanguage,
  otherFan,
  pay,
  SAME_ORIGIN,
  scanQr,
  tabTo,
  test,
  textsOf,
} from './fan';
import { Organiser } from './organiser';

// These tests buy.
test.use({ accountOf: 'traveller' });

/** The texts of the pages, and of the waiting page, which the program makes. */
interface Words {
  readonly lang: 'ko' | 'en';
  readonly texts: Record<string, string>;
  readonly place: RegExp;
  readonly turn: string;
  readonly toSeats: string;
  readonly reserve: string;
}

const KOREAN: Words = {
  lang: 'ko',
  texts: textsOf('ko'),
  place: /내 순번 2번째/,
  turn: '입장하실 차례입니다',
  toSeats: '예매하러 가기',
  reserve: '1석 예매하기',
};

const ENGLISH: Words = {
  lang: 'en',
  texts: textsOf('en'),
  place: /Your place in line 2/,
  turn: 'It is your turn',
  toSeats: 'Choose tickets',
  reserve: 'Book 1 seat',
};

async function register(page: Page, words: Words): Promise<void> {
  await page.locator('main').getByRole('link', { name: words.texts.register! }).click();
  await page.getByLabel(words.texts.register_agree_all!).check();
  await page.getByRole('button', { name: words.texts.register_next! }).click();
  await page.getByLabel(words.texts.register_name!, { exact: true }).fill('박한강');
  await page.getByLabel(words.texts.email!).fill(`journey.${words.lang}.${Date.now()}@example.com`);
  await page.getByLabel(words.texts.password!, { exact: true }).fill('a long enough secret');
  await page.locator('form').getByRole('button', { name: words.texts.register_submit! }).click();
  await page.getByRole('button', { name: words.texts.login_continue! }).click({ timeout: 30_000 });
}

async function travel(page: Page, words: Words): Promise<void> {
  const organiser = await Organiser.logIn();
  const eventId = await organiser.createSale({ grid: { rows: 2, seatsPerRow: 4 }, threshold: 1 });
  const inside = await otherFan('inside');
  await enter(inside, eventId);
  const ahead = await otherFan('ahead');
  const checked = await ahead.post(`/api/queue/check/${eventId}`);
  expect((await checked.json()).status, 'somebody waits').toBe('queued');
  const look = async () => {
    await expectOneLanguage(page, words.lang);
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
  };

  await page.goto(`/events/${eventId}`);
  await page.locator('main').getByRole('link', { name: words.texts.event_action_queue! }).click();
  await register(page, words);

  // The only slot is taken and somebody is before us: we wait, also over a reload.
  await page.waitForURL(`**/queue/${eventId}`);
  const place = page.getByRole('heading', { level: 1 }).filter({ visible: true });
  await expect(place).toHaveText(words.place);
  await look();
  await page.reload();
  await expect(place).toHaveText(words.place);

  await ahead.post(`/api/queue/leave/${eventId}`);
  await inside.post(`/api/queue/leave/${eventId}`);
  await expect(page.getByRole('heading', { name: words.turn })).toBeVisible({ timeout: 30_000 });
  await page.getByRole('link', { name: words.toSeats }).click();

  await expect(page.getByRole('application')).toBeVisible();
  await look();
  await page.getByRole('button', { name: words.texts.seats_view_list!, exact: true }).click();
  await page.locator('[data-section="0"]').click();
  await page.locator('.seat[aria-pressed="false"]').first().click();
  await page.getByRole('button', { name: words.reserve }).click();
  await page.waitForURL(/\/checkout\/reservation\//);
  await expect(page.getByRole('timer')).toBeVisible();
  await look();
  await pay(page);
  await expect(page.getByRole('heading', { name: words.texts.result_paid_title! })).toBeVisible();
  await look();
  await page.getByRole('link', { name: words.texts.result_see_tickets! }).click();

  const payload = await scanQr(page);
  await look();
  expect(await organiser.checkIn(eventId, payload)).toBe('ok');
  expect(await organiser.checkIn(eventId, payload)).toBe('ALREADY_CHECKED_IN');
  for (const one of [inside, ahead, organiser]) await one.dispose();
}

test('W-5 from registering to the entrance, in Korean', async ({ page }) => {
  test.slow();
  await page.setViewportSize({ width: 1280, height: 900 });
  await travel(page, KOREAN);
});

test.describe('on a phone', () => {
  test.use({ locale: 'en-GB', viewport: { width: 360, height: 740 } });

  test('from registering to the entrance, in English', async ({ page }) => {
    test.slow();
    await travel(page, ENGLISH);
  });
});

test.describe('by keyboard alone', () => {
  test('a ticket is bought from the home page without touching a pointer', async ({
    fanPage: page,
  }) => {
    test.slow();
    const organiser = await Organiser.logIn();
    const title = `자판만으로 ${Date.now()}`;
    const eventId = await organiser.createSale({ title, grid: { rows: 2, seatsPerRow: 4 } });
    await organiser.dispose();

    await page.goto('/');
    await tabTo(page, 'header a[href="/search"], main a[href^="/search"], header [href="/search"]');
    await page.keyboard.press('Enter');
    await tabTo(page, 'input[type="search"]');
    await page.keyboard.type(title);
    await tabTo(page, `main a[href="/events/${eventId}"]`);
    await page.keyboard.press('Enter');
    await tabTo(page, `main a[href="/queue/${eventId}"]`);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/events/${eventId}/seats`);

    await tabTo(page, '[role="application"]');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await expect(page.locator('.chosen li')).toHaveCount(1);
    const reserve = page.getByRole('button', { name: '1석 예매하기' });
    await expect(reserve).toBeEnabled();
    await tabTo(page, reserve);
    await page.keyboard.press('Enter');

    await page.waitForURL(/\/checkout\/reservation\//);
    await tabTo(page, 'main input[type="checkbox"]');
    await page.keyboard.press('Space');
    await tabTo(page, 'main button[type="submit"]');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/sandbox\/pay/);
    await tabTo(page, 'button.go');
    await page.keyboard.press('Enter');
    await expect(page.getByRole('heading', { name: '예매 완료' })).toBeVisible();
    await tabTo(page, 'main a[href^="/my/reservations/"]');
    await page.keyboard.press('Enter');
    await expect(page.getByRole('img', { name: /입장 QR 코드/ })).toBeVisible();
  });
});

test('W-7 an event shows its ticket types from the first moment', async ({ page }) => {
  const organiser = await Organiser.logIn();
  const eventId = await organiser.createSale({ tickets: 7 });
  await organiser.dispose();
  await page.goto(`/events/${eventId}`);
  await expect(page.getByText('스탠딩', { exact: true }).last()).toBeVisible();
  await expect(page.getByText('잔여 7')).toBeVisible();
});

test('W-8 the checkout names the seats, and needs no slot', async ({ fanPage: page }) => {
  const organiser = await Organiser.logIn();
  const eventId = await organiser.createSale({ grid: { rows: 1, seatsPerRow: 4 } });
  await organiser.dispose();
  await page.goto(`/events/${eventId}/seats`);
  await page.getByRole('button', { name: '목록', exact: true }).click();
  await page.locator('[data-section="0"]').click();
  await page.locator('.seat[aria-pressed="false"]').nth(1).click();
  await page.getByRole('button', { name: '1석 예매하기' }).click();
  await page.waitForURL(/\/checkout\/reservation\//);
  await page.request.post(`/api/queue/leave/${eventId}`, { headers: SAME_ORIGIN });
  await page.reload();
  await expect(page.getByText(/1열 2번/)).toBeVisible();
  await pay(page);
  await expect(page.getByRole('heading', { name: '예매 완료' })).toBeVisible();
  // The page of the result can be loaded again.
  await page.reload();
  await expect(page.getByRole('heading', { name: '예매 완료' })).toBeVisible();
});
