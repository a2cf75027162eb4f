/**
 * An organiser's sale from the drawing of the hall to the settlement, and the evening at its doors.
 * The steps share one sale in a program of their own: what its ledger gains is the sale's.
 */
import { readFile } from 'node:fs/promises';
import type { APIRequestContext, Browser, BrowserContextOptions, Page } from '@playwright/test';
import {
  adminApi,
  answerOf,
  apiOf,
  createArtist,
  expectGoodPage,
  pageOf,
  registerWorker,
  seoulTime,
  tabTo,
  type Worker,
} from './admin';
import {
  type Account,
  dialogAtRest,
  expect,
  holdSeats,
  join,
  otherFan,
  payNow,
  registerFan,
  test,
  watch,
} from './fan';
import { board, drag, pointOf, saveHall, sections } from './hallEditor';
import { type MoneyAudit, type RunningProgram, runOwnProgram } from './program';

const PHONE = { width: 360, height: 740 };
const DESKTOP = { width: 1280, height: 900 };
/** Fans who buy a seat while the organiser watches. */
const FANS = 50;
const AT_ONCE = 10;
const VENUE = '여정 극장';
const TITLE = '여정 콘서트';
const MESSAGE = '잠시 점검합니다. 순번은 그대로입니다.';
const MEMBERSHIP = 10_000;
/** Tickets that both doors scan. */
const TWICE = 3;

interface Ticket {
  readonly number: string;
  readonly qr: string;
}

interface Bought {
  readonly reservationId: string;
  readonly amount: number;
  readonly ticket: Ticket;
}

let program: RunningProgram;
let ledgerBefore: MoneyAudit['ledger'];
let organiser: Worker;
let staff: Worker;
let artist: { id: string; name: string };
let venueId = '';
let hallId = '';
let eventId = '';
const bought: Bought[] = [];
let refunded: Bought;
let problems: string[][] = [];

test.describe.configure({ mode: 'serial' });

test.beforeAll(async () => {
  test.setTimeout(120_000);
  program = await runOwnProgram({ URR_DEMO_SEED: 'false' });
  ledgerBefore = (await program.audit()).ledger;
  const admin = await adminApi(program);
  artist = await createArtist(admin);
  await admin.dispose();
  organiser = await registerWorker('organiser', 'organiser', program);
  staff = await registerWorker('staff', 'staff', program);
});

test.afterAll(() => program?.stop());

test.beforeEach(() => {
  problems = [];
});

/** A page of somebody; whatever it logs fails the test, unless it is allowed. */
async function open(browser: Browser, who: Account, options: BrowserContextOptions = {}) {
  const viewport = DESKTOP;
  const page = await pageOf(browser, who, { viewport, ...options, baseURL: program.url });
  problems.push(watch(page.context()));
  return page;
}

function expectQuiet(allowed = /404/): void {
  expect(problems.flat().filter((one) => !allowed.test(one))).toEqual([]);
}

const figure = (page: Page, name: string) =>
  page.locator('dl div', { has: page.getByText(name, { exact: true }) }).locator('.value');

const won = (amount: number) => `${amount.toLocaleString('en-US')}원`;

test('the organiser draws a hall', async ({ browser }) => {
  const page = await open(browser, organiser);
  await page.goto('/admin/halls');
  await expectGoodPage(page);
  await page.getByRole('button', { name: '공연장 추가' }).press('Enter');
  await dialogAtRest(page);
  await tabTo(page, /^공연장 이름/);
  await page.keyboard.type(VENUE);
  await tabTo(page, /^주소/);
  await page.keyboard.type('서울특별시 종로구 1');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: VENUE })).toBeVisible();
  await page.getByRole('link', { name: /홀 그리기/ }).press('Enter');
  await page.getByLabel('홀 이름').fill('여정 홀');

  await page.getByRole('button', { name: '사각형 구역' }).click();
  const at = await pointOf(page);
  await drag(page, at(-500, 500), at(500, 1000));
  await expect(sections(page)).toHaveText([/A.*5열 100석/]);
  // The keyboard moves it away from the stage, and a second section comes behind it.
  await board(page).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('a');
  await expect(sections(page)).toHaveCount(2);
  await page.getByRole('region', { name: /^B/ }).getByLabel('등급').fill('S');
  await page.getByRole('region', { name: /^B/ }).getByLabel('등급').press('Enter');
  await expectGoodPage(page);
  hallId = await saveHall(page);
  const api = await apiOf(organiser, program.url);
  const { hall } = await answerOf(api.get(`/api/admin/halls/${hallId}`));
  expect(hall.grades).toEqual(['R', 'S']);
  expect(hall.editable).toBe(true);
  venueId = hall.venueId;
  await api.dispose();
  expectQuiet();
  await page.context().close();
});

test('the organiser creates an event with a pre-sale and a lottery', async ({ browser }) => {
  const page = await open(browser, organiser);
  const next = async (heading: string) => {
    await tabTo(page, /^다음/);
    await page.keyboard.press('Enter');
    await expect(page.getByRole('heading', { level: 2, name: heading })).toBeFocused();
  };
  await page.goto('/admin/events');
  await expect(page.getByRole('heading', { name: '아직 공연이 없습니다' })).toBeVisible();
  await expectGoodPage(page);
  await page.getByRole('link', { name: '새 공연' }).first().press('Enter');
  await page.getByLabel('공연 제목').waitFor();
  await tabTo(page, /^공연 제목/);
  await page.keyboard.type(TITLE);
  await page.getByLabel('아티스트').selectOption({ label: artist.name });
  await next('장소');
  await page.getByLabel('공연장', { exact: true }).selectOption(venueId);
  await page.getByLabel('홀', { exact: true }).selectOption(hallId);
  await next('가격');
  await page.getByLabel('R 가격(원)', { exact: true }).fill('99,000');
  await page.getByLabel('S 가격(원)', { exact: true }).fill('66,000');
  await expectGoodPage(page);
  await next('일시');
  await page.getByLabel('공연 시작').fill(seoulTime(60, '19:30'));
  await page.getByLabel('예매 시작').fill(seoulTime(10, '20:00'));
  await page.getByLabel('예매 마감').fill(seoulTime(59, '20:00'));
  await next('오픈 방식');
  await tabTo(page, /^멤버십 선예매/);
  await page.keyboard.press('Space');
  await tabTo(page, /^추첨 순서로 입장/);
  await page.keyboard.press('Space');
  await expectGoodPage(page);
  await next('구매 규칙');
  await next('확인과 공개');
  await expectGoodPage(page);
  await tabTo(page, /^공개하기/);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/admin\/events\/[0-9a-f-]{36}$/);
  await expect(page.getByText('추첨', { exact: true })).toBeVisible();
  await expectGoodPage(page);
  eventId = page.url().split('/').at(-1) ?? '';

  const fan = await open(browser, await registerFan('reader', program.url), { viewport: PHONE });
  await fan.goto(`/events/${eventId}`);
  await expect(fan.getByRole('heading', { name: TITLE })).toBeVisible();
  await expect(fan.getByText('선예매 시각')).toBeVisible();
  await fan.goto(`/draws/${eventId}`);
  await expect(fan.getByRole('heading', { name: '추첨값을 미리 잠갔습니다' })).toBeVisible();
  expectQuiet();
  await fan.context().close();
  await page.context().close();
});

/** Brings the general sale near, as if the pre-sale were about to end. */
async function bringSaleNearer(api: APIRequestContext, generalInMs: number): Promise<void> {
  const { event } = await answerOf(api.get(`/api/admin/events/${eventId}`));
  const presaleMs = 48 * 3_600_000;
  const saleStartsAt = new Date(Date.now() - presaleMs + generalInMs).toISOString();
  const data = { revision: event.revision, saleStartsAt };
  await answerOf(api.put(`/api/admin/events/${eventId}`, { data }));
}

async function buySeat(fan: APIRequestContext, seat: number): Promise<Bought> {
  const status = async () => {
    const checked = await fan.post(`/api/queue/check/${eventId}`);
    return (await checked.json()).status;
  };
  await expect.poll(status, { timeout: 20_000, intervals: [200] }).toBe('active');
  const reservationId = await holdSeats(fan, eventId, [seat]);
  await payNow(fan, { paymentType: 'reservation', referenceId: reservationId });
  const { reservation } = await answerOf(fan.get(`/api/reservations/${reservationId}`));
  return { reservationId, amount: reservation.totalAmount, ticket: reservation.tickets[0] };
}

/** Fans buy a seat each, some at a time. */
async function buyAll(fans: readonly APIRequestContext[], firstSeat: number): Promise<Bought[]> {
  const all: Bought[] = [];
  for (let from = 0; from < fans.length; from += AT_ONCE) {
    const some = fans.slice(from, from + AT_ONCE);
    all.push(
      ...(await Promise.all(some.map((fan, index) => buySeat(fan, firstSeat + from + index)))),
    );
  }
  return all;
}

async function registerFans(count: number): Promise<APIRequestContext[]> {
  const fans: APIRequestContext[] = [];
  while (fans.length < count) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - fans.length) }, (_, index) =>
      otherFan(`buyer${fans.length + index}`, program.url),
    );
    fans.push(...(await Promise.all(some)));
  }
  return fans;
}

test('fifty fans buy while the organiser watches, pauses and tells them why', async ({
  browser,
}) => {
  test.setTimeout(120_000);
  const api = await apiOf(organiser, program.url);
  const fans = await registerFans(FANS - 1);
  const member = await otherFan('member', program.url);
  await join(member, artist.id);
  const page = await open(browser, organiser);
  await page.goto(`/admin/events/${eventId}/live`);
  await expect(page.getByText('실시간', { exact: true })).toBeVisible({ timeout: 20_000 });
  await bringSaleNearer(api, 9_000);

  // In the pre-sale a member buys, and others are told when they may.
  bought.push(await buySeat(member, 0));
  const early = await fans[0]!.post(`/api/queue/check/${eventId}`);
  expect([early.status(), (await early.json()).code]).toEqual([403, 'PRESALE_MEMBERS_ONLY']);
  await expect
    .poll(async () => (await fans[0]!.post(`/api/queue/check/${eventId}`)).status(), {
      timeout: 15_000,
    })
    .toBe(200);

  bought.push(...(await buyAll(fans, 1)));
  expect(new Set(bought.map(({ ticket }) => ticket.number)).size).toBe(FANS);
  const sum = bought.reduce((total, { amount }) => total + amount, 0);
  await expect(figure(page, '판매')).toHaveText(String(FANS), { timeout: 20_000 });
  await expect(figure(page, '매출')).toHaveText(won(sum), { timeout: 20_000 });
  await expectGoodPage(page);

  // By keyboard: nobody enters, and those who wait read why.
  await page.getByRole('button', { name: '입장 일시 중지' }).press('Enter');
  await dialogAtRest(page);
  await page.getByRole('dialog').getByRole('button', { name: '입장 일시 중지' }).press('Enter');
  await expect(page.getByText('일시 중지', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: '안내 문구' }).press('Enter');
  await dialogAtRest(page);
  await page.getByRole('dialog').getByLabel('대기 화면에 보여 줄 문구').fill(MESSAGE);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('main').getByText(MESSAGE)).toBeVisible();
  const late = await registerFan('late', program.url);
  const waiting = await open(browser, late, { viewport: PHONE });
  await waiting.goto(`/queue/${eventId}`);
  await expect(waiting.getByText(MESSAGE)).toBeVisible();
  await expectGoodPage(waiting);
  await expect(figure(page, '대기')).toHaveText('1', { timeout: 20_000 });

  await page.getByRole('button', { name: '입장 다시 시작' }).press('Enter');
  await dialogAtRest(page);
  await page.getByRole('dialog').getByRole('button', { name: '입장 다시 시작' }).press('Enter');
  await expect(figure(page, '대기')).toHaveText('0', { timeout: 20_000 });
  // What the organiser did is written down, for them to read.
  for (const action of ['ROOM_PAUSED', 'ROOM_RESUMED'])
    await expect(page.getByText(action, { exact: true })).toBeVisible();
  const lateApi = await apiOf(late, program.url);
  bought.push(await buySeat(lateApi, FANS));
  await expect(figure(page, '판매')).toHaveText(String(FANS + 1), { timeout: 20_000 });
  expectQuiet();
  await waiting.context().close();
  await page.context().close();
  await Promise.all([...fans, member, lateApi, api].map((one) => one.dispose()));
});

test('the organiser refunds one and moves the event', async ({ browser }) => {
  test.slow();
  const api = await apiOf(organiser, program.url);
  const page = await open(browser, organiser);
  refunded = bought.pop()!;
  const path = `/api/admin/reservations/${refunded.reservationId}`;
  const { reservation } = await answerOf(api.get(path));
  await page.goto(`/admin/reservations?eventId=${eventId}`);
  await page.getByLabel('예매 검색').fill(reservation.reservationNumber);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('table').getByRole('row')).toHaveCount(2);
  await expectGoodPage(page);
  await page.getByRole('link', { name: reservation.reservationNumber }).press('Enter');
  await page.getByRole('button', { name: '취소하고 환불' }).press('Enter');
  await dialogAtRest(page);
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('사유').fill('고객 요청');
  await dialog.getByLabel(/^계속하려면 입력/).fill(reservation.reservationNumber);
  await expectGoodPage(page);
  await page.keyboard.press('Enter');
  await expect(page.getByText('예매를 취소했습니다.')).toBeVisible();
  const paymentStatus = async () => (await answerOf(api.get(path))).reservation.paymentStatus;
  await expect.poll(paymentStatus, { timeout: 20_000 }).toBe('refunded');
  const history = page.getByRole('region', { name: '예매 내역' });
  await expect(history.getByText('환불', { exact: true })).toBeVisible({ timeout: 15_000 });

  await page.goto(`/admin/events/${eventId}`);
  await page.getByRole('button', { name: '일정 변경' }).press('Enter');
  await dialogAtRest(page);
  await page.getByLabel('새 공연 시작').fill(seoulTime(61, '18:00'));
  await expect(dialog.getByText('알림을 받는 구매자')).toBeVisible();
  await expectGoodPage(page);
  await page.getByRole('button', { name: '일정 변경하기' }).press('Enter');
  await expect(page.getByText('일정을 변경했습니다.')).toBeVisible();
  const moved = await answerOf(api.get(`/api/events/${eventId}`));
  expect(Date.parse(moved.event.startsAt)).toBe(Date.parse(`${seoulTime(61, '18:00')}:00+09:00`));
  expectQuiet();
  await api.dispose();
  await page.context().close();
});

/** The amounts of the totals in a settlement file. */
function totalsOf(csv: string): Map<string, number> {
  const rows = csv
    .replace(/^\uFEFF/, '')
    .trim()
    .split(/\r?\n/)
    .map((line) => line.split(',').map((cell) => cell.replace(/^"|"$/g, '')));
  const totals = rows.filter(([kind]) => kind === '합계');
  return new Map(totals.map(([, name = '', , amount]) => [name, Number(amount)]));
}

test('the settlement is what the audit says', async ({ browser }) => {
  const page = await open(browser, organiser);
  await page.goto(`/admin/events/${eventId}/settlement`);
  await expect(page.getByText('총 판매')).toBeVisible();
  await expectGoodPage(page);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: '정산 CSV' }).press('Enter');
  const totals = totalsOf(await readFile(await (await download).path(), 'utf8'));
  const { explained, ledger } = await program.audit();
  expect(explained).toBe(true);
  const gain = (of: (one: MoneyAudit['ledger']) => number) => of(ledger) - of(ledgerBefore);
  const balance = (account: string) =>
    Math.abs(gain(({ balances }) => balances.find((one) => one.account === account)?.balance ?? 0));
  const [soldThen, cancelled] = [gain((one) => one.sold), gain((one) => one.cancelled)];
  const sold = bought.reduce((total, { amount }) => total + amount, refunded.amount);
  // The member's fee for the year is the only other charge in this ledger.
  expect(soldThen).toBe(sold + MEMBERSHIP);
  expect(totals.get('총매출')).toBe(soldThen - MEMBERSHIP);
  expect(totals.get('환불')).toBe(cancelled);
  expect(gain((one) => one.refunded)).toBe(refunded.amount);
  expect(totals.get('남은 금액')).toBe(soldThen - cancelled - MEMBERSHIP);
  expect(totals.get('예매 수수료')).toBe(balance('booking_fees'));
  expect(totals.get('처리 중인 환불')).toBe(gain((one) => one.owed));
  expect(totals.get('결제 대행사 잔액')).toBe(balance('provider') - MEMBERSHIP);
  expectQuiet();
  await page.context().close();
});

/** A phone at a door. */
async function openDoor(browser: Browser, door: string): Promise<Page> {
  const page = await open(browser, staff, { viewport: PHONE });
  await page.goto(`/admin/check-in/${eventId}`);
  await page.getByLabel('출입구 이름').fill(door);
  await page.keyboard.press('Enter');
  await expect(page.getByTestId('listed')).toBeVisible();
  return page;
}

async function scan(page: Page, { qr }: Ticket, outcome: string): Promise<void> {
  const field = page.getByLabel('티켓 번호 또는 코드');
  await field.fill(qr);
  await field.press('Enter');
  await expect(page.locator('[data-outcome]')).toHaveAttribute('data-outcome', outcome);
  await expect(field).toHaveValue('');
}

test('staff check fifty tickets in at two doors, one of them without a network', async ({
  browser,
}) => {
  test.setTimeout(120_000);
  const page = await open(browser, organiser);
  await page.goto(`/admin/events/${eventId}/staff`);
  await page.getByLabel('이메일').fill(staff.email);
  await page.keyboard.press('Enter');
  await expect(page.getByText('담당자를 지정했습니다.')).toBeVisible();
  await expectGoodPage(page);

  const tickets = bought.map(({ ticket }) => ticket);
  expect(tickets).toHaveLength(FANS);
  const [north, south] = [await openDoor(browser, '북문'), await openDoor(browser, '남문')];
  await expectGoodPage(north);
  // The phone has what the page needs before the network goes.
  await south.evaluate(() => navigator.serviceWorker.ready);
  await expect
    .poll(() =>
      south.evaluate(async () => {
        const shell = await caches.match('/admin/check-in/_', { ignoreVary: true });
        return shell !== undefined;
      }),
    )
    .toBe(true);
  await south.context().setOffline(true);
  const half = FANS / 2;
  for (const ticket of tickets.slice(0, half)) await scan(north, ticket, 'accepted');
  await scan(north, refunded.ticket, 'cancelled');
  // This phone cannot know whom the other door has let in.
  for (const ticket of tickets.slice(half - TWICE)) await scan(south, ticket, 'accepted');
  await expect(south.getByTestId('queued')).toHaveText(String(half + TWICE));
  await south.context().setOffline(false);
  await expect(south.getByTestId('queued')).toHaveText('0', { timeout: 20_000 });
  await expect(south.getByTestId('in')).toHaveText(String(FANS), { timeout: 20_000 });
  await expect(south.getByTestId('left')).toHaveText('0');
  // Both doors let them in: the phone shows which, and where they were before.
  const twice = south.getByRole('listitem').filter({ hasText: '북문' });
  await expect(twice).toHaveCount(TWICE);
  // The header covers what is scrolled half under it.
  await south.evaluate(() => scrollTo(0, 0));
  await expectGoodPage(south);
  const api = await apiOf(organiser, program.url);
  const counted = await answerOf(api.get(`/api/admin/check-ins?eventId=${eventId}`));
  expect(counted).toMatchObject({ checkedIn: FANS, conflicts: TWICE });
  await api.dispose();
  await page.reload();
  const conflicts = page.getByRole('table', { name: '두 번 입장한 티켓' });
  await expect(conflicts.getByText('북문')).toHaveCount(TWICE);
  await expectGoodPage(page);
  expectQuiet(/404|INTERNET_DISCONNECTED|Failed to load resource|status 40[39]|status 422/);
  for (const one of [page, north, south]) await one.context().close();
});

test('another organiser sees none of it', async ({ browser }) => {
  const other = await registerWorker('organiser', 'stranger', program);
  const page = await open(browser, other);
  const seen = async (path: string, heading: string) => {
    await page.goto(path);
    await expect(page.getByRole('heading', { name: heading }).first(), path).toBeVisible();
    await expect(page.getByText(TITLE), path).toHaveCount(0);
  };
  await seen('/admin/events', '아직 공연이 없습니다');
  await seen('/admin/reservations', '조건에 맞는 예매가 없습니다');
  await seen('/admin/payments', '결제가 없습니다');
  await seen('/admin/statistics', '아직 공연이 없습니다');
  for (const tab of ['', '/live', '/edit', '/tickets', '/house', '/settlement', '/staff'])
    await seen(`/admin/events/${eventId}${tab}`, '볼 수 없는 공연입니다');
  await seen(`/admin/reservations/${refunded.reservationId}`, '없는 예매입니다');
  await page.goto(`/admin/halls/${hallId}`);
  await expect(page.getByText('만든 사람과 관리자만 바꿀 수 있습니다')).toBeVisible();
  await expect(page.getByRole('button', { name: '저장', exact: true })).toHaveCount(0);

  const api = await apiOf(other, program.url);
  const event = `/api/admin/events/${eventId}`;
  for (const path of [
    event,
    `${event}/live`,
    `${event}/settlement`,
    `${event}/settlement.csv`,
    `${event}/payments.csv`,
    `${event}/reservations.csv`,
    `${event}/cancel-preview`,
    `${event}/seat-map`,
    `${event}/staff`,
    `${event}/house-seats`,
    `${event}/check-in-list`,
    `/api/admin/queue/${eventId}`,
    `/api/admin/reservations/${refunded.reservationId}`,
    `/api/stats/events/${eventId}`,
  ])
    expect([403, 404], path).toContain((await api.get(path)).status());
  const pause = await api.post(`/api/admin/queue/${eventId}/pause`);
  expect([403, 404]).toContain(pause.status());
  const hall = await api.put(`/api/admin/halls/${hallId}`, { data: { name: '남의 홀' } });
  expect([hall.status(), (await hall.json()).code]).toEqual([403, 'NOT_YOUR_HALL']);
  await api.dispose();
  expectQuiet(/40[34]/);
  await page.context().close();
});

test('the pages are good in English', async ({ browser }) => {
  test.slow();
  const page = await open(browser, organiser, { locale: 'en-GB', viewport: PHONE });
  for (const path of [
    '/admin',
    '/admin/halls',
    '/admin/events',
    `/admin/events/${eventId}`,
    `/admin/events/${eventId}/live`,
    `/admin/events/${eventId}/settlement`,
    `/admin/events/${eventId}/house`,
    `/admin/events/${eventId}/staff`,
    `/admin/reservations/${bought[0]!.reservationId}`,
    '/admin/statistics',
  ]) {
    await page.goto(path);
    await expect(page.getByRole('heading', { level: 1 }), path).toBeVisible();
    await expect(page.locator('main [aria-busy="true"]'), path).toHaveCount(0);
    await expectGoodPage(page, 'en');
  }
  expectQuiet();
  await page.context().close();
});
