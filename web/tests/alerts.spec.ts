import { type APIRequestContext, type Page, request } from '@playwright/test';
import {
  type Account,
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  expectOneLanguage,
  holdSeats,
  enter,
  logIn,
  otherFan,
  payNow,
  registerFan,
  SAME_ORIGIN,
  test,
} from './fan';
import { mailsTo, mailWith } from './mailbox';
import { Organiser, unique } from './organiser';
import { verifiedFan } from './verifiedFan';

async function apiOf({ email, password }: Account): Promise<APIRequestContext> {
  const baseURL = process.env.URR_URL ?? '';
  const api = await request.newContext({ baseURL, extraHTTPHeaders: SAME_ORIGIN });
  const login = await api.post('/api/auth/login', { data: { email, password } });
  expect(login.ok(), await login.text()).toBe(true);
  return api;
}

async function sale(options: Parameters<Organiser['createSale']>[0]): Promise<string> {
  const organiser = await Organiser.logIn();
  const eventId = await organiser.createSale(options);
  await organiser.dispose();
  return eventId;
}

/** Everything of the event is bought; returns who bought it and the reservation. */
async function buyAll(eventId: string, seats: number) {
  const buyer = await otherFan('buyer');
  const reservationId = await holdSeats(buyer, eventId, [...Array(seats).keys()]);
  await payNow(buyer, { reservationId });
  return { buyer, reservationId };
}

async function askOnPage(page: Page, eventId: string, quantity: number) {
  await page.goto(`/events/${eventId}`);
  const panel = page.getByRole('region', { name: '취소표 알림' });
  for (let more = 1; more < quantity; more++)
    await panel.getByRole('button', { name: '늘리기' }).click();
  await panel.getByRole('button', { name: '취소표 알림 받기' }).click();
  return panel;
}

test('a message is readable from its first frame', async ({ page, context }) => {
  const eventId = await sale({ grid: { rows: 1, seatsPerRow: 4 }, opensInSeconds: 7_200 });
  await logIn(page, await verifiedFan('reading'));
  await page.goto(`/events/${eventId}`);
  // The animation takes seconds, so that its first frames are what is looked at.
  const client = await context.newCDPSession(page);
  await client.send('Animation.enable');
  await client.send('Animation.setPlaybackRate', { playbackRate: 0.01 });
  await page.getByRole('button', { name: '판매 알림 받기' }).click();
  await expect(page.locator('.toast')).toBeVisible();
  await expectAccessible(page);
});

test('a fan asks before a sale, gets the mail and withdraws the alert', async ({ page }) => {
  const account = await verifiedFan('opening');
  const title = unique('알림 공연');
  const eventId = await sale({ title, grid: { rows: 1, seatsPerRow: 4 }, opensInSeconds: 7_200 });
  await logIn(page, account);
  await page.goto(`/events/${eventId}`);
  await page.getByRole('button', { name: '판매 알림 받기' }).click();
  await expect(page.getByRole('button', { name: '알림 신청됨' })).toBeVisible();
  await expectAccessible(page);
  await expectNoSidewaysScroll(page);
  await mailWith(account.email, '판매가 곧 시작됩니다');

  await page.goto('/my/notifications');
  const mine = page.getByRole('region', { name: '신청한 알림' });
  await expect(mine.getByRole('link', { name: title })).toBeVisible();
  await expectAccessible(page);
  await expectNoSidewaysScroll(page);
  await expectOneLanguage(page, 'ko');
  await mine.getByRole('button', { name: '해제' }).click();
  await expect(mine.getByText('신청한 알림이 없습니다')).toBeVisible();
  await expectAccessible(page);
  await page.goto(`/events/${eventId}`);
  await expect(page.getByRole('button', { name: '판매 알림 받기' })).toBeVisible();
  expect(mailsTo(account.email).filter(({ text }) => text.includes('곧 시작'))).toHaveLength(1);
});

test('returned seats go to the first who asked, then to the second', async ({ page }) => {
  const [first, second] = [await verifiedFan('first'), await verifiedFan('second')];
  const eventId = await sale({ grid: { rows: 1, seatsPerRow: 2 } });
  const { buyer, reservationId } = await buyAll(eventId, 2);
  await logIn(page, first);
  const panel = await askOnPage(page, eventId, 2);
  await expect(panel.getByText('다음 차례입니다')).toBeVisible();
  await expectAccessible(page);
  await expectNoSidewaysScroll(page);
  await expectOneLanguage(page, 'ko');
  const other = await apiOf(second);
  const asked = await other.put(`/api/alerts/events/${eventId}/seats`, {
    data: { grade: 'R', quantity: 2 },
  });
  expect((await asked.json()).ahead, await asked.text()).toBe(1);

  const cancelled = await buyer.post(`/api/reservations/${reservationId}/cancel`);
  expect(cancelled.ok(), await cancelled.text()).toBe(true);
  const told = await mailWith(first.email, '취소표가 나왔습니다');
  // A program that polls is refused meanwhile.
  const program = await otherFan('program');
  const headers = { ...SAME_ORIGIN, 'x-queue-entry-token': await enter(program, eventId) };
  const refused = await program.post('/api/seats/reserve', {
    data: { eventId, seatIds: [0] },
    headers,
  });
  expect((await refused.json()).code).toBe('SEATS_OFFERED');
  expect(await mailWith(second.email, '취소표가 나왔습니다')).toBeGreaterThan(told);

  // The first one takes them.
  const api = await apiOf(first);
  await payNow(api, { reservationId: await holdSeats(api, eventId, [0, 1]) });
  await page.goto('/my/notifications');
  const mine = page.getByRole('region', { name: '신청한 알림' });
  await expect(mine.getByText('취소표를 선택하셨습니다')).toBeVisible();
  await expectAccessible(page);
  expect(mailsTo(first.email).filter(({ text }) => text.includes('취소표가 나왔'))).toHaveLength(1);
  await Promise.all([buyer, other, program, api].map((one) => one.dispose()));
});

test('a seat map does not offer what is kept for fans who asked', async ({ page, browser }) => {
  const [fan, other] = [await verifiedFan('asked'), await verifiedFan('passing')];
  const eventId = await sale({ grid: { rows: 1, seatsPerRow: 2 } });
  // Both look at the map, from the first sale until the seats return.
  const context = await browser.newContext({ locale: 'ko-KR' });
  const asking = await context.newPage();
  await logIn(page, other);
  await logIn(asking, fan);
  for (const one of [page, asking]) {
    await one.goto(`/events/${eventId}/seats`);
    await expect(one.getByRole('button', { name: /R.*2석/ })).toBeVisible();
  }
  const { buyer, reservationId } = await buyAll(eventId, 2);
  const ask = async (account: Account, quantity: number) => {
    const data = { grade: 'R', quantity };
    const asked = await (await apiOf(account)).put(`/api/alerts/events/${eventId}/seats`, { data });
    expect(asked.ok(), await asked.text()).toBe(true);
  };
  await ask(fan, 1);
  // Others who wait for two keep the seats closed while this test looks at them.
  for (const label of ['next', 'third']) await ask(await verifiedFan(label), 2);
  for (const one of [page, asking])
    await expect(one.getByRole('button', { name: /R.*매진/ })).toBeVisible();
  const cancelled = await buyer.post(`/api/reservations/${reservationId}/cancel`);
  expect(cancelled.ok(), await cancelled.text()).toBe(true);
  await expect(page.getByRole('button', { name: /R.*우선 예매 중/ })).toBeVisible();
  await expect(page.getByText('먼저 알림을 신청한 분들이 고르고 있으며')).toBeVisible();
  await expectAccessible(page);
  await page.getByRole('button', { name: '목록', exact: true }).click();
  await expect(page.locator('[data-section="0"]')).toBeDisabled();

  await mailWith(fan.email, '취소표가 나왔습니다');
  await asking.getByRole('button', { name: '목록', exact: true }).click();
  await asking.locator('[data-section="0"]').click({ timeout: 20_000 });
  await asking.locator('.seat').first().click();
  await asking.locator('.seat').last().click();
  await expect(asking.getByText('신청한 매수인 1석까지')).toBeVisible();
  await expect(asking.getByRole('button', { name: '1석 예매하기' })).toBeEnabled();
  await context.close();
});

test('an alert about returned seats can be withdrawn', async ({ page }) => {
  const account = await verifiedFan('withdrawing');
  const eventId = await sale({ grid: { rows: 1, seatsPerRow: 1 } });
  const { buyer } = await buyAll(eventId, 1);
  await logIn(page, account);
  const panel = await askOnPage(page, eventId, 1);
  await panel.getByRole('button', { name: '해제' }).click();
  await expect(panel.getByText('다음 차례입니다')).toBeHidden();
  await page.goto('/my/notifications');
  await expect(page.getByText('신청한 알림이 없습니다')).toBeVisible();
  await buyer.dispose();
});

test('tickets come with the mail of the purchase', async () => {
  const account = await verifiedFan('tickets');
  const eventId = await sale({ grid: { rows: 1, seatsPerRow: 2 } });
  const api = await apiOf(account);
  await payNow(api, { reservationId: await holdSeats(api, eventId, [0]) });
  await mailWith(account.email, '첨부된 PDF');
  const mail = mailsTo(account.email).find(({ text }) => text.includes('첨부된 PDF'));
  expect(mail?.text).toContain('application/pdf');
  await api.dispose();
});

test.describe('a fan without a verified address', () => {
  test.use({ allowed: /403/ });

  test('is told to verify it', async ({ page }) => {
    const account = await registerFan('unverified');
    const eventId = await sale({ grid: { rows: 1, seatsPerRow: 4 }, opensInSeconds: 7_200 });
    await logIn(page, account);
    await page.goto(`/events/${eventId}`);
    await page.getByRole('button', { name: '판매 알림 받기' }).click();
    await expect(page.getByRole('alert')).toContainText('인증된 이메일로만');
    await expectAccessible(page);
  });
});
