/** Waiting in real rooms: small ones that are full. */
import type { APIRequestContext, Page } from '@playwright/test';
import {
  enter,
  expect,
  expectAccessible,
  holdTickets,
  logIn,
  otherFan,
  payNow,
  registerFan,
  SAME_ORIGIN,
  test,
} from './fan';
import { Organiser } from './organiser';

test.use({ viewport: { width: 360, height: 740 } });

/** A sale with one slot, which somebody has. */
async function fullRoom(tickets = 100): Promise<{ eventId: string; inside: APIRequestContext }> {
  const organiser = await Organiser.logIn();
  const eventId = await organiser.createSale({ tickets, threshold: 1 });
  await organiser.dispose();
  const inside = await otherFan('inside');
  await enter(inside, eventId);
  return { eventId, inside };
}

const place = (page: Page) => page.getByRole('heading', { level: 1 }).filter({ visible: true });

async function statusOf(page: Page, eventId: string) {
  return (await page.request.get(`/api/queue/status/${eventId}`)).json();
}

/** A fan of its own for each test: a place belongs to an account. */
async function waitingFan(page: Page, eventId: string): Promise<void> {
  await logIn(page, await registerFan('waiting'));
  await page.goto(`/queue/${eventId}`);
  await expect(place(page)).toContainText('1번째');
}

test('W-4 a reload and a closed tab keep the place', async ({ page, context }) => {
  const { eventId, inside } = await fullRoom();
  await waitingFan(page, eventId);
  const { number } = await statusOf(page, eventId);
  await page.reload();
  await expect(place(page)).toContainText('1번째');
  await page.close({ runBeforeUnload: true });
  const again = await context.newPage();
  await again.goto(`/queue/${eventId}`);
  await expect(place(again)).toContainText('1번째');
  expect((await statusOf(again, eventId)).number).toBe(number);
  await inside.dispose();
});

test('two tabs show the same place, and both get the turn', async ({ page, context }) => {
  const { eventId, inside } = await fullRoom();
  await waitingFan(page, eventId);
  const other = await context.newPage();
  await other.goto(`/queue/${eventId}`);
  await expect(place(other)).toContainText('1번째');
  expect((await statusOf(page, eventId)).queueSize).toBe(1);
  await inside.post(`/api/queue/leave/${eventId}`);
  await expect(place(page)).toHaveText('입장하실 차례입니다', { timeout: 20_000 });
  await expect(place(other)).toHaveText('입장하실 차례입니다', { timeout: 20_000 });
  await inside.dispose();
});

test('a second device has the same place', async ({ page, browser }) => {
  const { eventId, inside } = await fullRoom();
  const account = await registerFan('devices');
  await logIn(page, account);
  await page.goto(`/queue/${eventId}`);
  await expect(place(page)).toContainText('1번째');
  const { number } = await statusOf(page, eventId);
  const baseURL = process.env.URR_URL ?? '';
  const device = await browser.newContext({ baseURL, locale: 'ko-KR' });
  const other = await device.newPage();
  await logIn(other, account);
  await other.goto(`/queue/${eventId}`);
  await expect(place(other)).toContainText('1번째');
  expect(await statusOf(other, eventId)).toMatchObject({ number, queueSize: 1 });
  await device.close();
  await inside.dispose();
});

test.describe('a second tab', () => {
  test.use({ allowed: /409/ });

  test('of the seat map has the hold of the first', async ({ page, context }) => {
    const organiser = await Organiser.logIn();
    const eventId = await organiser.createSale({ grid: { rows: 1, seatsPerRow: 4 } });
    await organiser.dispose();
    await logIn(page, await registerFan('tabs'));
    await page.goto(`/events/${eventId}/seats`);
    await page.getByRole('button', { name: '목록', exact: true }).click();
    await page.locator('[data-section="0"]').click();
    await page.locator('.seat').first().click();
    const other = await context.newPage();
    await other.goto(`/events/${eventId}/seats`);
    await expect(other.getByRole('application')).toBeVisible();
    await page.getByRole('button', { name: '1석 예매하기' }).click();
    await page.waitForURL(/\/checkout\/reservation\//);

    // In the other tab the same fan chooses another seat: there is one hold, and it says so.
    await other.getByRole('button', { name: '목록', exact: true }).click();
    await other.locator('[data-section="0"]').click();
    await other.locator('.seat[aria-pressed="false"]:not([disabled])').nth(1).click();
    await other.getByRole('button', { name: '1석 예매하기' }).click();
    await expect(other.getByRole('dialog')).toContainText('결제를 기다리는 좌석이 있습니다');
    await other.getByRole('button', { name: '그 좌석 결제하기' }).click();
    await other.waitForURL(/\/checkout\/reservation\//);
    expect(other.url()).toBe(page.url());
  });
});

test('after sleep the page asks at once', async ({ page }) => {
  const { eventId, inside } = await fullRoom();
  await page.clock.install();
  await waitingFan(page, eventId);
  await page.clock.pauseAt(new Date(Date.now() + 1_000));
  // The device sleeps: no timer runs, and meanwhile the turn comes.
  await inside.post(`/api/queue/leave/${eventId}`);
  await expect.poll(async () => (await statusOf(page, eventId)).status).toBe('active');
  await expect(place(page)).toContainText('1번째');
  await page.clock.fastForward('05:00');
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await page.clock.runFor(1_000);
  await expect(place(page)).toHaveText('입장하실 차례입니다');
  await inside.dispose();
});

test.describe('without a network', () => {
  test.use({ allowed: /INTERNET_DISCONNECTED/ });

  test('the place stays on the page, and the line goes on when it is back', async ({
    page,
    context,
  }) => {
    const { eventId, inside } = await fullRoom();
    await waitingFan(page, eventId);
    await context.setOffline(true);
    await expect(page.getByText('연결이 끊겼습니다').last()).toBeVisible();
    await expect(place(page)).toContainText('1번째');
    await inside.post(`/api/queue/leave/${eventId}`);
    await context.setOffline(false);
    await expect(place(page)).toHaveText('입장하실 차례입니다', { timeout: 20_000 });
    await inside.dispose();
  });
});

test.describe('a room that does not answer', () => {
  test.use({ allowed: /503/, serviceWorkers: 'block' });

  test('W-3 a failed check keeps the fan on the waiting page', async ({ page }) => {
    const { eventId, inside } = await fullRoom();
    await logIn(page, await registerFan('refused'));
    let isDown = true;
    let asked = 0;
    await page.route(/\/api\/queue\/(check|status)\//, async (route) => {
      asked += 1;
      if (!isDown) return route.continue();
      const json = {
        code: 'QUEUE_UNAVAILABLE',
        error: '잠시 후 다시 시도해 주세요.',
        retryAfter: 1,
      };
      await route.fulfill({ status: 503, json });
    });
    await page.goto(`/queue/${eventId}`);
    await expect.poll(() => asked).toBeGreaterThan(1);
    await expect(page).toHaveURL(new RegExp(`/queue/${eventId}$`));
    isDown = false;
    await expect(place(page)).toContainText('1번째', { timeout: 20_000 });
    await inside.dispose();
  });
});

test('sold out while waiting is said at once', async ({ page }) => {
  const { eventId, inside } = await fullRoom(1);
  await waitingFan(page, eventId);
  await expect(page.getByRole('alert')).toBeHidden();
  await payNow(inside, { reservationId: await holdTickets(inside, eventId) });
  await expect(page.getByRole('alert')).toContainText('모든 티켓이 판매되었습니다', {
    timeout: 20_000,
  });
  await expectAccessible(page);
  await inside.dispose();
});

test.describe('without JavaScript', () => {
  test.use({ javaScriptEnabled: false });

  test('a fan joins, sees the place, gets the turn and leaves', async ({ page }) => {
    const { eventId, inside } = await fullRoom();
    const { email, password } = await registerFan('plain');
    await page.request.post('/api/auth/login', { data: { email, password }, headers: SAME_ORIGIN });
    await page.goto(`/queue/${eventId}`);
    await page.waitForURL(/\?plain$/);
    await page.getByRole('button', { name: '줄 서기' }).click();
    await expect(place(page)).toContainText('1번째');
    // It reloads by itself; a fan may reload as well.
    await expect(page.locator('noscript meta[http-equiv="refresh"]')).toHaveCount(1);
    await inside.post(`/api/queue/leave/${eventId}`);
    await expect.poll(async () => (await statusOf(page, eventId)).status).toBe('active');
    await page.goto(`/queue/${eventId}?plain`);
    await expect(place(page)).toHaveText('입장하실 차례입니다');
    await expect(page.getByRole('link', { name: '예매하러 가기' })).toHaveAttribute(
      'href',
      `/events/${eventId}/book`,
    );
    await page.getByText('줄에서 나가기').click();
    await page.getByRole('button', { name: '순번을 포기하고 나가기' }).click();
    await expect(place(page)).toHaveText('줄을 서지 않은 상태입니다');
    expect((await statusOf(page, eventId)).status).toBe('not_in_queue');
    await inside.dispose();
  });
});
