/** Reservations and payments as an organiser, support and an administrator handle them. */
import type { Request } from '@playwright/test';
import {
  adminApi,
  apiOf,
  createPlace,
  createStanding,
  expectGoodPage,
  pageOf,
  registerWorker,
  type Worker,
} from './admin';
import { dialogAtRest, expect, holdTickets, logIn, otherFan, payNow, test } from './fan';
import { unique } from './organiser';

test.use({ accountOf: 'adminsales' });

let organiser: Worker;
let venueId: string;

test.beforeAll(async () => {
  organiser = await registerWorker('organiser', 'seller');
  const api = await adminApi();
  ({ venueId } = await createPlace(api));
  await api.dispose();
});

/** A fan who has bought one ticket. */
async function buyOne(eventId: string, label: string) {
  const fan = await otherFan(label);
  let reservationId = '';
  await expect(async () => {
    reservationId = await holdTickets(fan, eventId);
  }).toPass({ timeout: 20_000 });
  await payNow(fan, { paymentType: 'reservation', referenceId: reservationId });
  return { fan, reservationId };
}

test('one booking is refunded, with its number typed; the other stays', async ({ page }) => {
  test.slow();
  const api = await apiOf(organiser);
  const title = unique('환불 공연');
  const eventId = await createStanding(api, venueId, { title });
  const bought = await buyOne(eventId, 'refunded');
  const kept = await buyOne(eventId, 'kept');
  await logIn(page, organiser);
  await page.goto(`/admin/reservations?eventId=${eventId}`);
  const table = page.getByRole('table', { name: '예매' });
  await expect(table.getByRole('row')).toHaveCount(3);
  const { reservation } = await (
    await api.get(`/api/admin/reservations/${bought.reservationId}`)
  ).json();
  await table.getByRole('link', { name: reservation.reservationNumber }).click();
  await expect(page.getByText('55,000원').first()).toBeVisible();
  await page.getByRole('button', { name: '취소하고 환불' }).click();
  await dialogAtRest(page);
  await expect(page.getByText('55,000원을 환불합니다.')).toBeVisible();
  const dialog = page.getByRole('dialog');
  const confirm = dialog.getByRole('button', { name: '취소하고 환불' });
  await dialog.getByLabel('사유').fill('고객 요청');
  await expect(confirm).toBeDisabled();
  await dialog.getByLabel(/^계속하려면 입력/).fill(reservation.reservationNumber);
  await expectGoodPage(page);
  await confirm.click();
  await expect(page.getByText('예매를 취소했습니다.')).toBeVisible();
  await expect
    .poll(
      async () => {
        const answer = await api.get(`/api/admin/reservations/${bought.reservationId}`);
        return (await answer.json()).reservation.paymentStatus;
      },
      { timeout: 20_000 },
    )
    .toBe('refunded');
  const other = await (await api.get(`/api/admin/reservations/${kept.reservationId}`)).json();
  expect(other.reservation.status).toBe('confirmed');
});

test('a booking is found by its number and by the buyer, with its history', async ({ page }) => {
  test.slow();
  const api = await apiOf(organiser);
  const eventId = await createStanding(api, venueId);
  const { fan, reservationId } = await buyOne(eventId, 'searched');
  const { user } = await (await fan.get('/api/auth/me')).json();
  const { reservation } = await (await api.get(`/api/admin/reservations/${reservationId}`)).json();
  await logIn(page, organiser);
  for (const wanted of [reservation.reservationNumber, user.email]) {
    await page.goto('/admin/reservations');
    await page.getByLabel('예매 검색').fill(wanted);
    await page.keyboard.press('Enter');
    await expect(page.getByRole('table').getByRole('row')).toHaveCount(2);
    await expect(page.getByText(reservation.reservationNumber)).toBeVisible();
    // An organiser recognises an address, but does not get it.
    await expect(page.getByRole('table').getByText(user.email)).toHaveCount(0);
  }
  await page.getByRole('link', { name: reservation.reservationNumber }).click();
  const history = page.getByRole('region', { name: '예매 내역' });
  await expect(history.getByText('선점', { exact: true })).toBeVisible();
  await expect(history.getByText('결제', { exact: true })).toBeVisible();
  await expectGoodPage(page);
});

test('the settlement shows what was sold and refunded, and is a file', async ({ page }) => {
  test.slow();
  const api = await apiOf(organiser);
  const eventId = await createStanding(api, venueId);
  await buyOne(eventId, 'settled');
  await logIn(page, organiser);
  await page.goto(`/admin/events/${eventId}/settlement`);
  await expect(page.getByText('총 판매')).toBeVisible();
  await expect
    .poll(async () => {
      await page.reload();
      await page.getByText('총 판매').waitFor();
      return page.getByText('55,000원').count();
    })
    .toBeGreaterThan(2);
  await expectGoodPage(page);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: '정산 CSV' }).click();
  expect((await download).suggestedFilename()).toMatch(/\.csv$/);
});

test('a part of a payment is refunded, never more than was paid', async ({ page }) => {
  test.slow();
  const api = await apiOf(organiser);
  const eventId = await createStanding(api, venueId);
  const { reservationId } = await buyOne(eventId, 'part');
  const { reservation } = await (await api.get(`/api/admin/reservations/${reservationId}`)).json();
  await logIn(page, organiser);
  await page.goto(`/admin/payments/${reservation.paymentId}`);
  await page.getByRole('button', { name: '환불하기' }).click();
  await dialogAtRest(page);
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('환불 방법').selectOption('part');
  await dialog.getByLabel('환불 금액').fill('60,000');
  await expect(dialog.getByText('환불할 수 있는 금액보다 많습니다.')).toBeVisible();
  await dialog.getByLabel('사유').fill('음향 사고');
  await expect(dialog.getByRole('button', { name: '환불하기' })).toBeDisabled();
  await dialog.getByLabel('환불 금액').fill('5,000');
  await expect(dialog.getByText('5,000원을 환불합니다.')).toBeVisible();
  await expectGoodPage(page);
  await dialog.getByRole('button', { name: '환불하기' }).click();
  await expect(page.getByText('환불을 시작했습니다.')).toBeVisible();
  await expect
    .poll(
      async () => {
        const answer = await api.get(`/api/admin/payments/${reservation.paymentId}`);
        return (await answer.json()).payment.refundedAmount;
      },
      { timeout: 20_000 },
    )
    .toBe(5_000);
  await expect(page.getByRole('table', { name: '환불' }).getByText('음향 사고')).toBeVisible();
});

test.describe('with refusals', () => {
  test.use({ allowed: /404/ });

  test('another organiser sees neither the booking nor the payment', async ({ page }) => {
    const api = await apiOf(organiser);
    const eventId = await createStanding(api, venueId);
    const { reservationId } = await buyOne(eventId, 'hidden');
    const { reservation } = await (
      await api.get(`/api/admin/reservations/${reservationId}`)
    ).json();
    await logIn(page, await registerWorker('organiser', 'stranger'));
    await page.goto(`/admin/reservations?eventId=${eventId}`);
    await expect(page.getByRole('heading', { name: '조건에 맞는 예매가 없습니다' })).toBeVisible();
    await page.goto(`/admin/reservations/${reservationId}`);
    await expect(page.getByRole('heading', { name: '없는 예매입니다' })).toBeVisible();
    await page.goto(`/admin/payments/${reservation.paymentId}`);
    await expect(page.getByRole('heading', { name: '없는 결제입니다' })).toBeVisible();
    await page.goto('/admin/payments');
    await expect(page.getByRole('heading', { name: '결제가 없습니다' })).toBeVisible();
  });
});

test('the audit says that every won is explained', async ({ page }) => {
  await logIn(page, await registerWorker('admin', 'auditor'));
  const isOrder = (request: Request) =>
    request.method() === 'POST' && request.url().endsWith('/audit');
  const orders: string[] = [];
  page.on('request', (request) => {
    if (isOrder(request)) orders.push(new URL(request.url()).pathname);
  });
  await page.goto('/admin/payments/audit');
  await expect(page.getByText(/마지막 검사|아직 검사하지/)).toHaveCount(2);
  expect(orders, 'looking audits nothing').toEqual([]);
  await page.getByRole('button', { name: '다시 검사' }).click();
  await expect(page.getByText('모든 금액이 맞습니다.')).toBeVisible();
  await expect(page.getByText(/마지막 검사/)).toHaveCount(2);
  expect(orders.sort()).toEqual(['/api/admin/payments/audit', '/api/admin/reservations/audit']);
  await expectGoodPage(page);
});

for (const [locale, tag] of [
  ['ko', 'ko-KR'],
  ['en', 'en-GB'],
] as const) {
  test(`the pages of sales are good at 360 pixels: ${locale}`, async ({ browser }) => {
    test.slow();
    const api = await apiOf(organiser);
    const eventId = await createStanding(api, venueId);
    const { reservationId } = await buyOne(eventId, `narrow${locale}`);
    const answer = await api.get(`/api/admin/reservations/${reservationId}`);
    const { reservation } = await answer.json();
    const page = await pageOf(browser, organiser, {
      locale: tag,
      viewport: { width: 360, height: 740 },
    });
    for (const path of [
      'reservations',
      `reservations/${reservationId}`,
      'payments',
      `payments/${reservation.paymentId}`,
    ]) {
      await page.goto(`/admin/${path}`);
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
      await page.waitForLoadState('networkidle');
      await expectGoodPage(page, locale);
    }
    await page.context().close();
  });
}
