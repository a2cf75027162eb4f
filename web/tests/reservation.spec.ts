/** A paid reservation: its files, what cancelling costs, and cancelling some or all of it. */
import { readFileSync } from 'node:fs';
import type { Page } from '@playwright/test';
import {
  dialogAtRest,
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  expectStill,
  holdSeats,
  logIn,
  payNow,
  readQr,
  registerFan,
  scanQr,
  test,
} from './fan';
import { Organiser } from './organiser';

test.use({ viewport: { width: 360, height: 740 } });

const DAY_MS = 86_400_000;
/** A tenth is kept from the booking on, and a half on the day before. */
const OWN_FEES = {
  graceHours: 0,
  graceDaysBeforeMin: 0,
  bands: [
    { daysBeforeMin: 2, percent: 10 },
    { daysBeforeMin: 1, percent: 50 },
    { daysBeforeMin: 0, percent: 100 },
  ],
};

const sale = test.extend<object, { organiser: Organiser; eventId: string }>({
  organiser: [
    // eslint-disable-next-line no-empty-pattern -- Playwright reads what a fixture needs from it.
    async ({}, use) => {
      const organiser = await Organiser.logIn();
      await use(organiser);
      await organiser.dispose();
    },
    { scope: 'worker' },
  ],
  eventId: [
    async ({ organiser }, use) => {
      const grid = { rows: 10, seatsPerRow: 10 };
      await use(await organiser.createSale({ grid, event: { cancelPolicy: OWN_FEES } }));
    },
    { scope: 'worker' },
  ],
});

/** Workers have events of their own. */
let nextSeat = 0;

/** A fan with so many tickets, on the page of their reservation. */
async function withTickets(page: Page, eventId: string, count: number): Promise<string> {
  const seats = Array.from({ length: count }, () => nextSeat++);
  return withSeats(page, eventId, seats);
}

async function withSeats(page: Page, eventId: string, seats: number[]): Promise<string> {
  await logIn(page, await registerFan('owner'));
  const id = await holdSeats(page.request, eventId, seats);
  await payNow(page.request, { reservationId: id });
  await page.goto(`/my/reservations/${id}`);
  await expect(page.getByRole('img', { name: /QR/ })).toHaveCount(seats.length);
  await expectStill(page);
  return id;
}

sale('some tickets are cancelled, and the others stay valid', async ({ page, eventId }) => {
  const id = await withTickets(page, eventId, 3);
  await page.getByRole('button', { name: '예매 취소' }).click();
  const dialog = page.getByRole('dialog');
  // Everything is chosen at first, and each ticket says what it gives.
  await expect(dialog.getByRole('button', { name: '취소하고 237,600원 돌려받기' })).toBeVisible();
  await expect(dialog.getByText('수수료 8,800원, 환불 79,200원')).toHaveCount(3);
  await dialog.getByRole('checkbox').nth(0).uncheck();
  await dialog.getByRole('checkbox').nth(2).uncheck();
  await dialogAtRest(page);
  await expectAccessible(page);
  await expectNoSidewaysScroll(page);
  await dialog.getByRole('button', { name: '1매 취소하고 79,200원 돌려받기' }).click();
  await expect(dialog).toBeHidden();
  await expect(
    page.getByText('티켓 1매를 취소했습니다. 환불 금액은 79,200원입니다.'),
  ).toBeVisible();
  await expect(page.getByRole('img', { name: /QR/ })).toHaveCount(2);
  const { reservation } = await (await page.request.get(`/api/reservations/${id}`)).json();
  expect(reservation).toMatchObject({
    status: 'confirmed',
    quantity: 2,
    cancelledRefundAmount: 79_200,
  });

  // The rest is cancelled as a whole, for the amount that is said.
  await page.getByRole('button', { name: '예매 취소' }).click();
  await page.getByRole('button', { name: '취소하고 158,400원 돌려받기' }).click();
  await expect(page.locator('.notice[role="status"]')).toContainText('158,400원');
  await expect(page.getByRole('img', { name: /QR/ })).toHaveCount(0);
});

sale('no ticket chosen cancels nothing', async ({ page, eventId }) => {
  await withTickets(page, eventId, 2);
  await page.getByRole('button', { name: '예매 취소' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('checkbox').nth(0).uncheck();
  await dialog.getByRole('checkbox').nth(1).uncheck();
  await expect(dialog.getByRole('button', { name: /0매 취소/ })).toBeDisabled();
});

sale('what cancelling costs is seen by date, as it was agreed', async ({ page, eventId }) => {
  await page.goto(`/events/${eventId}`);
  await expect(page.getByRole('row', { name: '공연 1일 전 50%' })).toBeVisible();
  await withTickets(page, eventId, 1);
  const rows = page.getByRole('table').getByRole('row');
  await expect(rows).toHaveCount(4);
  await expect(rows.nth(1)).toContainText(/지금\s*8,800원\s*79,200원/);
  await expect(rows.nth(1)).toHaveAttribute('aria-current', 'true');
  await expect(rows.nth(2)).toContainText(/44,000원\s*44,000원/);
  await expect(rows.nth(3)).toContainText(/88,000원\s*0원/);
  await expectAccessible(page);
  await expectNoSidewaysScroll(page);
});

sale('a moved event is cancelled for free', async ({ page, organiser }) => {
  const eventId = await organiser.createSale({
    grid: { rows: 1, seatsPerRow: 2 },
    event: { cancelPolicy: OWN_FEES },
  });
  await withSeats(page, eventId, [0]);
  const startsAt = new Date(Date.now() + 45 * DAY_MS).toISOString();
  await organiser.changeEvent(eventId, { startsAt });
  await expect(async () => {
    await page.reload();
    await expect(page.getByText(/공연 일정이 .* 바뀌었습니다/)).toBeVisible({ timeout: 2_000 });
  }).toPass({ timeout: 20_000 });
  await expectAccessible(page);
  await page.getByRole('button', { name: '예매 취소' }).click();
  await expect(page.getByRole('button', { name: '취소하고 88,000원 돌려받기' })).toBeVisible();
});

sale('tickets are saved as a PDF and as pictures', async ({ page, eventId }) => {
  await withTickets(page, eventId, 1);
  const [document] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'PDF로 저장' }).click(),
  ]);
  expect(document.suggestedFilename()).toMatch(/^tickets-R-.*\.pdf$/);
  const pdf = readFileSync(await document.path());
  expect(pdf.subarray(0, 5).toString()).toBe('%PDF-');

  const [picture] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'QR 이미지 저장' }).click(),
  ]);
  expect(picture.suggestedFilename()).toMatch(/^T-.*\.png$/);
  // The saved picture says what the screen shows.
  expect(await readQr(page, readFileSync(await picture.path()))).toBe(await scanQr(page));
});

test.describe('a reservation of somebody else', () => {
  test.use({ allowed: /404/ });

  test('is not there', async ({ fanPage: page }) => {
    await page.goto('/my/reservations/01a1e1a8-0000-7000-8000-000000000000');
    await expect(page.getByRole('heading', { name: '없는 예매입니다' })).toBeVisible();
    await expectAccessible(page);
  });
});
