/** House seats: an organiser blocks, gives away and sells at the box office; fans get the rest. */
import { readFile } from 'node:fs/promises';
import {
  adminApi,
  answerOf,
  apiOf,
  createPlace,
  createStanding,
  expectGoodPage,
  pageOf,
  type Place,
  registerWorker,
  type Worker,
} from './admin';
import type { APIRequestContext, Page } from '@playwright/test';
import {
  dialogAtRest,
  expect,
  expectAccessible,
  holdSeats,
  logIn,
  otherFan,
  payNow,
  test,
} from './fan';
import { unique } from './organiser';

// Somebody is refused on purpose.
test.use({ accountOf: 'adminhouse', allowed: /status (of )?(40[39]|503)/ });

let organiser: Worker;
let place: Place;

test.beforeAll(async () => {
  organiser = await registerWorker('organiser', 'house');
  const api = await adminApi();
  place = await createPlace(api);
  await api.dispose();
});

/** An event of the organiser with 60 seats: VIP in rows 1 and 2, R behind. */
async function createSeated(api: APIRequestContext): Promise<string> {
  const day = 86_400_000;
  const { event } = await answerOf(
    api.post('/api/admin/events', {
      data: {
        title: unique('보류 공연'),
        hallId: place.hallId,
        prices: { VIP: 120_000, R: 80_000 },
        saleStartsAt: new Date(Date.now() - 60_000).toISOString(),
        saleEndsAt: new Date(Date.now() + 30 * day).toISOString(),
        startsAt: new Date(Date.now() + 40 * day).toISOString(),
      },
    }),
  );
  await expect
    .poll(async () => (await answerOf(api.get(`/api/events/${event.id}`))).event.inventoryReady, {
      timeout: 15_000,
    })
    .toBe(true);
  return event.id;
}

/** Opens the page with its list, where seats are buttons. */
async function openList(page: Page, eventId: string): Promise<void> {
  await page.goto(`/admin/events/${eventId}/house`);
  await page.getByRole('button', { name: '목록', exact: true }).click();
}

const seat = (page: Page, row: number, number: number) =>
  page
    .getByRole('group', { name: `${row}열`, exact: true })
    .getByRole('button', { name: new RegExp(` ${number}번, `) });

/** Does what a button of the page says, with what its dialog asks for. */
async function confirm(page: Page, name: string, fields: Record<string, string>): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click();
  await dialogAtRest(page);
  const dialog = page.getByRole('dialog');
  for (const [label, value] of Object.entries(fields)) await dialog.getByLabel(label).fill(value);
  await dialog.getByRole('button', { name, exact: true }).click();
}

test('a fan cannot buy a blocked seat until it is released', async ({ page }) => {
  test.slow();
  const api = await apiOf(organiser);
  const eventId = await createSeated(api);
  await logIn(page, organiser);
  await openList(page, eventId);
  await seat(page, 1, 1).click();
  await seat(page, 1, 2).click();
  await expect(page.getByText('2개 선택')).toBeVisible();
  await confirm(page, '보류', { 사유: '기술 좌석' });
  await expect(page.getByText('보류했습니다.')).toBeVisible();
  await expect(page.getByRole('heading', { name: '기술 좌석' })).toBeVisible();
  await expectGoodPage(page);

  const fan = await otherFan('blocked');
  await expect(holdSeats(fan, eventId, [0])).rejects.toThrow(/SEAT_TAKEN/);

  await page.getByRole('button', { name: /^이 좌석 선택/ }).click();
  await expect(page.getByRole('button', { name: '보류', exact: true })).toBeDisabled();
  await confirm(page, '보류 해제', { 사유: '필요 없음' });
  await expect(page.getByText('보류를 해제했습니다.')).toBeVisible();
  await expect(page.getByText('보류한 좌석이 없습니다.')).toBeVisible();
  const reservationId = await holdSeats(fan, eventId, [0]);
  await payNow(fan, { paymentType: 'reservation', referenceId: reservationId });
  await fan.dispose();
});

test('a seat that somebody holds is named, and nothing is blocked', async ({ page }) => {
  test.slow();
  const api = await apiOf(organiser);
  const eventId = await createSeated(api);
  await logIn(page, organiser);
  await openList(page, eventId);
  await seat(page, 1, 3).click();
  await seat(page, 1, 4).click();
  const fan = await otherFan('quicker');
  await holdSeats(fan, eventId, [3]);
  await confirm(page, '보류', { 사유: '카메라' });
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByRole('listitem')).toHaveCount(1);
  await expect(dialog.getByRole('listitem')).toContainText('4번');
  const { blocked } = await answerOf(api.get(`/api/admin/events/${eventId}/house-seats`));
  expect(blocked).toEqual([]);
  await page.keyboard.press('Escape');
  await expect(page.getByText('1개 선택')).toBeVisible();
  await expect(seat(page, 1, 4)).toBeDisabled();
  await fan.dispose();
});

test('a complimentary ticket is valid at the door', async ({ page }) => {
  test.slow();
  const api = await apiOf(organiser);
  const eventId = await createSeated(api);
  await logIn(page, organiser);
  await openList(page, eventId);
  await seat(page, 2, 5).click();
  await confirm(page, '초대권 발급', { 사유: '협찬사', '초대받은 분': '김하루' });
  await expect(page.getByText('초대권을 발급했습니다.')).toBeVisible();
  await expect(page.getByText('김하루')).toBeVisible();
  const { reservations } = await answerOf(api.get(`/api/admin/events/${eventId}/house-seats`));
  const { tickets } = await answerOf(api.get(`/api/admin/events/${eventId}/check-in-list`));
  expect(tickets).toHaveLength(1);
  const checkedIn = await api.post('/api/admin/check-ins', {
    data: { payload: tickets[0].number, eventId },
  });
  expect(checkedIn.status(), await checkedIn.text()).toBe(200);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: /^PDF로 저장/ }).click();
  const file = await readFile(await (await download).path());
  expect(file.subarray(0, 5).toString()).toBe('%PDF-');
  await page.goto(`/admin/reservations/${reservations[0].id}`);
  await expect(page.getByText('초대권 발급').first()).toBeVisible();
});

test('complimentary tickets are revoked after a question, and their seats blocked again', async ({
  page,
}) => {
  test.slow();
  const api = await apiOf(organiser);
  const eventId = await createSeated(api);
  await page.setViewportSize({ width: 390, height: 844 });
  await logIn(page, organiser);
  await openList(page, eventId);
  await page.getByRole('button', { name: '2열 · 전체 선택' }).click();
  await expect(page.getByText('10개 선택')).toBeVisible();
  await confirm(page, '초대권 발급', { 사유: '협찬사', '초대받은 분': '김하루' });
  await expect(page.getByText('초대권을 발급했습니다.')).toBeVisible();
  await expect(page.getByText('10매')).toBeVisible();

  const revoke = page.getByRole('button', { name: /^회수/ });
  await revoke.click();
  await page.keyboard.press('Escape');
  await expect(revoke).toBeVisible();
  await revoke.click();
  await dialogAtRest(page);
  const dialog = page.getByRole('dialog');
  const sure = dialog.getByRole('button', { name: '회수', exact: true });
  await expect(sure).toBeDisabled();
  await expect(dialog.getByLabel('좌석을 다시 보류')).toBeChecked();
  await dialog.getByLabel('사유').fill('일정 취소');
  await expectGoodPage(page);
  await sure.click();
  await expect(page.getByText('초대권을 회수했습니다.')).toBeVisible();
  await expect(page.getByText('취소됨')).toBeVisible();
  await expect(page.getByRole('heading', { name: '일정 취소' })).toBeVisible();
  await expect(seat(page, 2, 1)).toHaveAccessibleName(/보류$/);
  // So tall that the menu at the bottom covers nothing.
  await page.setViewportSize({ width: 390, height: 2600 });
  await expectGoodPage(page);
});

test('the page loads, is refused, and is tried again', async ({ page }) => {
  const api = await apiOf(organiser);
  const eventId = await createSeated(api);
  await logIn(page, organiser);
  const json = { error: '바쁩니다.', code: 'BUSY', traceId: '4bf92f3577b34da6a3ce929d0e0e4736' };
  for (const part of ['house-seats', 'seat-map']) {
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const address = `**/api/admin/events/${eventId}/${part}*`;
    await page.route(address, async (route) => {
      await held;
      await route.fulfill({ status: 503, json });
    });
    await page.goto(`/admin/events/${eventId}/house`);
    await expect(page.locator('main .skeleton').first(), part).toBeVisible();
    await expectAccessible(page);
    release();
    await expect(page.locator('main').getByRole('alert'), part).toContainText('접속이 많습니다');
    await expectAccessible(page);
    await page.unroute(address);
    await page.getByRole('button', { name: '다시 시도' }).first().click();
    await expect(page.getByText('보류한 좌석이 없습니다.'), part).toBeVisible();
  }
  // The map is shown first; its chosen seats are those of the list.
  await expectGoodPage(page);
});

test('door staff may be allowed to sell at the box office', async ({ browser }) => {
  const api = await apiOf(organiser);
  const eventId = await createSeated(api);
  const [seller, other] = [await registerWorker('staff', 'seller'), await registerWorker('staff')];
  const page = await pageOf(browser, organiser, {
    locale: 'en-GB',
    viewport: { width: 390, height: 844 },
  });
  await page.goto(`/admin/events/${eventId}/staff`);
  const maySell = page.getByLabel('May sell at the box office');
  await maySell.check();
  await page.getByLabel('E-mail address').fill(seller.email);
  await page.keyboard.press('Enter');
  await expect(page.getByText('Yes', { exact: true })).toBeVisible();
  await expect(maySell).not.toBeChecked();
  await page.getByLabel('E-mail address').fill(other.id);
  await page.keyboard.press('Enter');
  await expect(page.getByText('No', { exact: true })).toBeVisible();
  await expect(page.locator('main').getByText(seller.name)).toHaveCount(2);
  await expect(page.getByText('s***@example.com')).toHaveCount(2);
  await expect(page.getByText(seller.id)).toHaveCount(0);
  await expectGoodPage(page, 'en');
  const { staff } = await answerOf(api.get(`/api/admin/events/${eventId}/staff`));
  const sells = staff.map((one: { userId: string; maySell: boolean }) => [one.userId, one.maySell]);
  expect(new Map(sells)).toEqual(
    new Map([
      [seller.id, true],
      [other.id, false],
    ]),
  );
  const sell = async (who: Worker, seatId: number) => {
    const theirs = await apiOf(who);
    const data = { places: { seatIds: [seatId] }, method: 'cash' };
    const answer = await theirs.post(`/api/admin/events/${eventId}/box-office`, { data });
    await theirs.dispose();
    return answer.status();
  };
  expect([await sell(seller, 20), await sell(other, 21)]).toEqual([201, 403]);
  await page.context().close();
});

test('door staff sell on a page of their own, at their events only', async ({ browser }) => {
  test.slow();
  const api = await apiOf(organiser);
  const [eventId, otherId] = [await createSeated(api), await createSeated(api)];
  const [seller, guard] = [await registerWorker('staff', 'till'), await registerWorker('staff')];
  const assign = (who: Worker, maySell: boolean) =>
    answerOf(api.put(`/api/admin/events/${eventId}/staff/${who.id}?maySell=${maySell}`));
  await assign(seller, true);
  await assign(guard, false);

  const page = await pageOf(browser, seller, { viewport: { width: 390, height: 844 } });
  await page.goto('/admin/check-in');
  await page.getByRole('link', { name: /^현장 판매/ }).click();
  await expect(page).toHaveURL(`/admin/check-in/${eventId}/box-office`);
  await expect(page.getByText('아직 판매한 티켓이 없습니다.')).toBeVisible();
  await expectGoodPage(page);
  for (const name of ['보류', '보류 해제', '초대권 발급'])
    await expect(page.getByRole('button', { name, exact: true })).toHaveCount(0);
  await page.getByRole('button', { name: '목록', exact: true }).click();
  await seat(page, 1, 1).click();
  await page.getByRole('button', { name: '현장 판매', exact: true }).click();
  await dialogAtRest(page);
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByText('120,000원')).toBeVisible();
  await expectGoodPage(page);
  await dialog.getByRole('button', { name: '현장 판매', exact: true }).click();
  await expect(page.getByText('판매했습니다.')).toBeVisible();
  await expect(seat(page, 1, 1)).toBeDisabled();
  await expect(page.getByRole('button', { name: /^PDF로 저장/ })).toBeVisible();
  await page.getByRole('button', { name: /^환불/ }).click();
  await dialogAtRest(page);
  await page.getByRole('dialog').getByRole('button', { name: '환불', exact: true }).click();
  await expect(page.getByText('환불했습니다.')).toBeVisible();

  // Not at an event of somebody else, and not without the permission.
  await page.goto(`/admin/check-in/${otherId}/box-office`);
  await expect(page.getByText('이 공연에서 판매할 수 없습니다')).toBeVisible();
  await expectGoodPage(page);
  await page.context().close();
  const closed = await pageOf(browser, guard, { locale: 'en-GB' });
  await closed.goto('/admin/check-in');
  await expect(closed.getByRole('link', { name: /보류 공연/ })).toHaveCount(1);
  await expect(closed.getByRole('link', { name: /^Sell at the box office/ })).toHaveCount(0);
  await closed.goto(`/admin/check-in/${eventId}/box-office`);
  await expect(closed.getByText('You cannot sell at this event')).toBeVisible();
  await expectGoodPage(closed, 'en');
  await closed.context().close();
});

test('an organiser deletes a hall of their own that no event uses', async ({ page }) => {
  const api = await apiOf(organiser);
  const gradeMapping = [{ grade: 'R', fromRow: 1, toRow: 2 }];
  const create = async (name: string) => {
    const data = { name, grid: { rows: 2, seatsPerRow: 5, gradeMapping } };
    return (await answerOf(api.post(`/api/admin/venues/${place.venueId}/halls`, { data }))).hall.id;
  };
  const [unused, used] = [await create(unique('빈 홀')), await create(unique('쓰는 홀'))];
  const day = 86_400_000;
  const at = (days: number) => new Date(Date.now() + days * day).toISOString();
  const times = { saleStartsAt: at(1), saleEndsAt: at(30), startsAt: at(40) };
  const data = { title: unique('공연'), hallId: used, prices: { R: 50_000 }, ...times };
  await answerOf(api.post('/api/admin/events', { data }));
  await logIn(page, organiser);

  await page.goto(`/admin/halls/${used}`);
  await page.getByRole('button', { name: '삭제', exact: true }).click();
  await dialogAtRest(page);
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByText(/공연 1개에 사용된 홀이라 삭제할 수 없습니다/)).toBeVisible();
  await expect(dialog.getByRole('button', { name: '삭제', exact: true })).toBeDisabled();
  await expectGoodPage(page);

  await page.goto(`/admin/halls/${unused}`);
  await page.getByRole('button', { name: '삭제', exact: true }).click();
  await dialogAtRest(page);
  await page.getByRole('dialog').getByRole('button', { name: '삭제', exact: true }).click();
  await expect(page.getByText('홀을 삭제했습니다.')).toBeVisible();
  await expect(page).toHaveURL('/admin/halls');
  expect((await api.get(`/api/admin/halls/${unused}`)).status()).toBe(404);

  // The hall of somebody else has no such button.
  await page.goto(`/admin/halls/${place.hallId}`);
  await expect(page.getByRole('button', { name: /^JSON/ })).toBeVisible();
  await expect(page.getByRole('button', { name: '삭제', exact: true })).toHaveCount(0);
});

test('a sale at the box office appears in the settlement', async ({ page }) => {
  test.slow();
  const api = await apiOf(organiser);
  const eventId = await createSeated(api);
  await logIn(page, organiser);
  await openList(page, eventId);
  await seat(page, 1, 7).click();
  await seat(page, 1, 8).click();
  await page.getByRole('button', { name: '현장 판매', exact: true }).click();
  await dialogAtRest(page);
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByText('240,000원')).toBeVisible();
  await dialog.getByLabel('결제 수단').selectOption('card');
  await dialog.getByLabel('단말기 영수증 번호').fill('0071');
  await expectGoodPage(page);
  await dialog.getByRole('button', { name: '현장 판매', exact: true }).click();
  await expect(page.getByText('판매했습니다.')).toBeVisible();
  await expect
    .poll(
      async () =>
        (await answerOf(api.get(`/api/admin/events/${eventId}/settlement`))).boxOfficeCard,
      { timeout: 20_000 },
    )
    .toBe(240_000);
  await page.goto(`/admin/events/${eventId}/settlement`);
  await expect(page.getByText('현장 판매 카드').first()).toBeVisible();
  const settled = await answerOf(api.get(`/api/admin/events/${eventId}/settlement`));
  expect(settled).toMatchObject({ grossSales: 240_000, atProvider: 0, explained: true });

  await page.goto(`/admin/events/${eventId}/house`);
  await page.getByRole('button', { name: /^환불/ }).click();
  await dialogAtRest(page);
  await page.getByRole('dialog').getByRole('button', { name: '환불', exact: true }).click();
  await expect(page.getByText('환불했습니다.')).toBeVisible();
  await expect
    .poll(
      async () =>
        (await answerOf(api.get(`/api/admin/events/${eventId}/settlement`))).boxOfficeCard,
      { timeout: 20_000 },
    )
    .toBe(0);
});

test('standing tickets are blocked by number, in English and by keyboard', async ({ browser }) => {
  test.slow();
  const api = await apiOf(organiser);
  const eventId = await createStanding(api, place.venueId, {
    title: '스탠딩 Standing',
    tickets: 10,
  });
  const page = await pageOf(browser, organiser, { locale: 'en-US' });
  await page.goto(`/admin/events/${eventId}/house`);
  await page.getByRole('spinbutton').focus();
  await page.keyboard.type('4');
  await expect(page.getByText('4 chosen')).toBeVisible();
  await page.getByRole('button', { name: 'Block', exact: true }).focus();
  await page.keyboard.press('Enter');
  await dialogAtRest(page);
  await page.getByRole('dialog').getByLabel('Reason').fill('Crew');
  await page.keyboard.press('Enter');
  await expect(page.getByText('They are blocked.')).toBeVisible();
  await expect(page.getByText('6 on sale')).toBeVisible();
  await expectGoodPage(page, 'en');
  await page.context().close();
});

test('another organiser sees none of it', async ({ page }) => {
  const api = await apiOf(organiser);
  const eventId = await createSeated(api);
  const other = await registerWorker('organiser', 'stranger');
  const theirs = await apiOf(other);
  const answer = await theirs.get(`/api/admin/events/${eventId}/house-seats`);
  expect([403, 404]).toContain(answer.status());
  await logIn(page, other);
  await page.goto(`/admin/events/${eventId}/house`);
  await expect(page.getByRole('heading', { name: '볼 수 없는 공연입니다' })).toBeVisible();
  await expect(page.getByRole('button', { name: '보류', exact: true })).toHaveCount(0);
});
