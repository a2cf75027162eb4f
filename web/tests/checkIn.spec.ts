/** Door staff with phones: online, without a network, and two of them with the same ticket. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from '@playwright/test';
import { correction, generate } from 'lean-qr';
import {
  type Account,
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  holdSeats,
  logIn,
  otherFan,
  payNow,
  registerFan,
  SAME_ORIGIN,
  test,
} from './fan';
import { Organiser } from './organiser';

const SEATS = 50;
const PER_FAN = 10;
const PHONE = { width: 360, height: 740 };

interface Sold {
  readonly number: string;
  readonly qr: string;
}

let organiser: Organiser;
let eventId: string;
let tickets: Sold[];
let staff: Account;

/** Fans buy every seat of the event. */
async function sellOut(event: string): Promise<Sold[]> {
  const sold: Sold[] = [];
  for (let first = 0; first < SEATS; first += PER_FAN) {
    const fan = await otherFan('visitor');
    const seats = Array.from({ length: PER_FAN }, (_, place) => first + place);
    const reservationId = await holdSeats(fan, event, seats);
    await payNow(fan, { reservationId });
    const bought = await fan.get(`/api/reservations/${reservationId}`);
    sold.push(...(await bought.json()).reservation.tickets);
    await fan.dispose();
  }
  return sold;
}

async function hire(...eventIds: string[]): Promise<Account> {
  const account = await registerFan('staff');
  const api = await otherFan('asks');
  const login = await api.post('/api/auth/login', {
    data: { email: account.email, password: account.password },
    headers: SAME_ORIGIN,
  });
  await organiser.hireStaff((await login.json()).user.userId, ...eventIds);
  await api.dispose();
  return account;
}

test.beforeAll(async () => {
  test.setTimeout(120_000);
  organiser = await Organiser.logIn();
  eventId = await organiser.createSale({
    grid: { rows: 5, seatsPerRow: 10 },
    event: { seatsPerUserMax: PER_FAN },
  });
  tickets = await sellOut(eventId);
  staff = await hire(eventId);
});

test.afterAll(async () => {
  await organiser.dispose();
});

// The tests share the tickets of one event.
test.describe.configure({ mode: 'serial' });
test.use({
  viewport: PHONE,
  allowed: /INTERNET_DISCONNECTED|Failed to load resource|status 40[39]|status 422/,
});

/** A phone at a door, ready to scan. */
async function openPhone(browser: Browser, door: string, event = eventId) {
  const options = { viewport: PHONE, baseURL: process.env.URR_URL ?? '', locale: 'ko-KR' };
  const context = await browser.newContext(options);
  const page = await context.newPage();
  await logIn(page, staff);
  await page.goto(`/admin/check-in/${event}`);
  await page.getByLabel('출입구 이름').fill(door);
  await page.getByRole('button', { name: '시작' }).click();
  await expect(page.getByTestId('listed')).toBeVisible();
  return { context, page };
}

async function scan(page: Page, code: string, outcome: string): Promise<void> {
  await page.getByLabel('티켓 번호 또는 코드').fill(code);
  await page.getByRole('button', { name: '확인', exact: true }).click();
  await expect(page.locator('[data-outcome]')).toHaveAttribute('data-outcome', outcome);
  await expect(page.getByLabel('티켓 번호 또는 코드')).toHaveValue('');
}

/** The page and its files are kept by the service worker. */
async function untilKept(page: Page): Promise<void> {
  await page.evaluate(() => navigator.serviceWorker.ready);
  await expect
    .poll(() =>
      page.evaluate(async () => {
        const kept = await caches.match('/admin/check-in/_', { ignoreVary: true });
        return kept !== undefined;
      }),
    )
    .toBe(true);
}

function ticket(place: number): Sold {
  const found = tickets[place];
  if (!found) throw new Error(`there is no ticket ${place}`);
  return found;
}

test('two phones check fifty tickets in, one of them without a network', async ({ browser }) => {
  test.setTimeout(180_000);
  const north = await openPhone(browser, '북문');
  const south = await openPhone(browser, '남문');
  await untilKept(south.page);
  await south.context.setOffline(true);

  for (let place = 0; place < 25; place++) await scan(north.page, ticket(place).qr, 'accepted');
  for (let place = 25; place < SEATS; place++) await scan(south.page, ticket(place).qr, 'accepted');
  await expect(south.page.getByTestId('queued')).toHaveText('25');
  await expect(south.page.getByText('오프라인', { exact: true })).toBeVisible();
  // A ticket that the other door let in meanwhile: this phone cannot know.
  await scan(south.page, ticket(0).qr, 'accepted');
  // What it has seen itself, it knows.
  await scan(south.page, ticket(30).qr, 'duplicate');
  await expect(south.page.getByRole('status').filter({ hasText: '이미 입장' })).toContainText(
    '남문',
  );
  await scan(south.page, ticket(30).number, 'duplicate');
  await scan(south.page, 'https://example.com', 'invalid');
  await scan(south.page, forge(ticket(31).qr), 'forged');

  // The phone is switched off and on again: nothing is lost.
  await south.page.reload();
  await south.page.getByRole('button', { name: '시작' }).click();
  await expect(south.page.getByTestId('queued')).toHaveText('26');

  await south.context.setOffline(false);
  await expect(south.page.getByTestId('queued')).toHaveText('0', { timeout: 20_000 });
  const counted = await organiser.countCheckIns(eventId);
  expect(counted).toMatchObject({ checkedIn: SEATS, conflicts: 1 });
  await expect(south.page.getByTestId('in')).toHaveText(String(SEATS), { timeout: 20_000 });
  await expect(south.page.getByTestId('left')).toHaveText('0');
  // The staff sees which of their scans was a duplicate, and of what.
  const first = south.page.getByRole('listitem').filter({ hasText: '이미 입장' });
  await expect(first.filter({ hasText: '북문' })).toHaveCount(1);
  await closeAll(north.context, south.context);
});

test('a scan can be undone, and then the ticket admits again', async ({ browser }) => {
  const other = await organiser.createSale({ tickets: 10, event: { allowsReentry: true } });
  const fan = await otherFan('returns');
  const [{ qr, number }] = await standingTicket(fan, other);
  staff = await hire(eventId, other);
  const { page, context } = await openPhone(browser, '1번 출입구', other);
  await scan(page, number.toLowerCase().replaceAll('-', ''), 'accepted');
  await scan(page, qr, 'duplicate');
  await expect(page.locator('[data-outcome]')).toContainText('1번 출입구');
  await page.getByRole('button', { name: /되돌리기/ }).click();
  await expect(page.getByText('되돌림')).toBeVisible();
  await expect(page.getByTestId('in')).toHaveText('0');
  await scan(page, qr, 'accepted');
  // They go out and come back.
  await page.getByText('퇴장', { exact: true }).click();
  await scan(page, qr, 'accepted');
  await scan(page, qr, 'not_inside');
  await page.getByText('입장', { exact: true }).first().click();
  await scan(page, qr, 'accepted');
  await fan.dispose();
  await closeAll(context);
});

test('a queued scan is undone on the phone alone', async ({ browser }) => {
  const other = await organiser.createSale({ tickets: 10 });
  const fan = await otherFan('stays');
  const [{ qr }] = await standingTicket(fan, other);
  staff = await hire(eventId, other);
  const { page, context } = await openPhone(browser, 'A', other);
  await context.setOffline(true);
  await scan(page, qr, 'accepted');
  await page.getByRole('button', { name: /되돌리기/ }).click();
  await expect(page.getByTestId('queued')).toHaveText('0');
  await scan(page, qr, 'accepted');
  await context.setOffline(false);
  await expect(page.getByTestId('queued')).toHaveText('0', { timeout: 20_000 });
  expect(await organiser.countCheckIns(other)).toMatchObject({ checkedIn: 1, conflicts: 0 });
  await fan.dispose();
  await closeAll(context);
});

test('a server that does not answer in time does not stop the line', async ({ browser }) => {
  const other = await organiser.createSale({ tickets: 10 });
  const fan = await otherFan('waits');
  const [{ qr }] = await standingTicket(fan, other);
  staff = await hire(eventId, other);
  const { page, context } = await openPhone(browser, 'A', other);
  // The request arrives, the answer does not.
  await page.route('**/api/admin/check-ins', async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    await route.fetch();
  });
  await scan(page, qr, 'accepted');
  await expect(page.getByTestId('queued')).toHaveText('0', { timeout: 20_000 });
  expect(await organiser.countCheckIns(other)).toMatchObject({ checkedIn: 1, conflicts: 0 });
  await fan.dispose();
  await context.close();
});

test('the camera reads a code', async () => {
  const other = await organiser.createSale({ tickets: 10 });
  const fan = await otherFan('shows');
  const [{ qr }] = await standingTicket(fan, other);
  staff = await hire(eventId, other);
  const folder = mkdtempSync(join(tmpdir(), 'urr-camera-'));
  const film = join(folder, 'code.y4m');
  writeFileSync(film, filmOf(qr));
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--use-fake-device-for-media-stream',
      '--use-fake-ui-for-media-stream',
      `--use-file-for-fake-video-capture=${film}`,
    ],
  });
  try {
    const { page } = await openPhone(browser, 'A', other);
    await page.getByRole('button', { name: '카메라 켜기' }).click();
    await expect(page.locator('[data-outcome]')).toHaveAttribute('data-outcome', 'accepted', {
      timeout: 15_000,
    });
    // The same ticket before the camera is not scanned again.
    await page.waitForTimeout(1_000);
    await expect(page.getByTestId('in')).toHaveText('1');
    await page.getByRole('button', { name: '카메라 끄기' }).click();
  } finally {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
    await fan.dispose();
  }
});

test('staff choose among their events, and see nothing of others', async ({ page }) => {
  const foreign = await organiser.createSale({ tickets: 10 });
  staff = await hire(eventId);
  await logIn(page, staff);
  await page.goto('/admin/check-in');
  const events = page.getByRole('main').getByRole('listitem');
  await expect(events).toHaveCount(1);
  await expectAccessible(page);
  await expectNoSidewaysScroll(page);
  await events.getByRole('link').click();
  await page.getByLabel('출입구 이름').fill('A');
  await page.keyboard.press('Enter');
  await expect(page.getByTestId('listed')).toBeVisible();
  await scan(page, 'hello', 'invalid');
  await expectAccessible(page);
  await expectNoSidewaysScroll(page);
  await page.goto(`/admin/check-in/${foreign}`);
  await expect(page.getByText('이 공연의 입장 확인 담당자가 아닙니다')).toBeVisible();
});

test('a fan is told that this is not for them', async ({ page }) => {
  await logIn(page, await registerFan('curious'));
  await page.goto('/admin/check-in');
  await expect(page.getByRole('main')).toContainText(/이용할 수 없|권한/);
});

test.describe('in English', () => {
  test.use({ locale: 'en-GB' });

  test('the page speaks English', async ({ page }) => {
    staff = await hire(eventId);
    await logIn(page, staff);
    await page.goto(`/admin/check-in/${eventId}`);
    await page.getByLabel('Name of the door').fill('Door 1');
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await page.getByLabel('Ticket number or code').fill(ticket(5).number);
    await page.getByRole('button', { name: 'Check', exact: true }).click();
    await expect(page.locator('[data-outcome]')).toContainText('Already inside');
    await expect(page.locator('[data-outcome]')).toContainText('북문');
    await expectAccessible(page);
    await expectNoSidewaysScroll(page);
  });
});

async function standingTicket(
  fan: Awaited<ReturnType<typeof otherFan>>,
  event: string,
): Promise<[Sold]> {
  const { holdTickets } = await import('./fan');
  const reservationId = await holdTickets(fan, event);
  await payNow(fan, { reservationId });
  const bought = await fan.get(`/api/reservations/${reservationId}`);
  return (await bought.json()).reservation.tickets;
}

async function closeAll(...contexts: BrowserContext[]): Promise<void> {
  for (const context of contexts) await context.close();
}

/** The same code with another signature. */
function forge(payload: string): string {
  const [prefix, what, signature = ''] = payload.split('.');
  const other = signature.startsWith('A') ? 'B' : 'A';
  return [prefix, what, other + signature.slice(1)].join('.');
}

/** A film of a sheet with the code, as a camera sees it. */
function filmOf(payload: string): Buffer {
  const [width, height, quiet] = [640, 480, 4];
  const code = generate(payload, { minCorrectionLevel: correction.M });
  const scale = Math.floor((height - 40) / (code.size + 2 * quiet));
  const [left, top] = [width, height].map((side) => Math.floor((side - code.size * scale) / 2));
  const luma = Buffer.alloc(width * height, 235);
  for (let y = 0; y < code.size * scale; y++)
    for (let x = 0; x < code.size * scale; x++)
      if (code.get(Math.floor(x / scale), Math.floor(y / scale)))
        luma[((top ?? 0) + y) * width + (left ?? 0) + x] = 16;
  const chroma = Buffer.alloc((width * height) / 2, 128);
  const frame = Buffer.concat([Buffer.from('FRAME\n'), luma, chroma]);
  const head = Buffer.from(`YUV4MPEG2 W${width} H${height} F10:1 Ip A1:1 C420jpeg\n`);
  return Buffer.concat([head, ...Array.from({ length: 10 }, () => frame)]);
}
