/**
 * A slow network: a button that changes something shows that it works, and pressing it again
 * meanwhile sends nothing.
 */
import type { Locator, Page, Route } from '@playwright/test';
import {
  chooseCard,
  expect,
  firstArtist,
  holdSeats,
  join,
  logIn,
  payNow,
  registerFan,
  test,
} from './fan';
import { Organiser, type SaleOptions } from './organiser';
import { verifiedFan } from './verifiedFan';

// What a service worker sends would not be held.
test.use({ serviceWorkers: 'block', viewport: { width: 360, height: 740 } });

/** What a phone has at the edge of a cell: 400 ms and 50 KB a second. */
async function slowDown(page: Page): Promise<void> {
  const client = await page.context().newCDPSession(page);
  await client.send('Network.enable');
  await client.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: 400,
    downloadThroughput: 50_000,
    uploadThroughput: 50_000,
  });
}

/** Requests that wait until they are let go. */
async function holdBack(page: Page, pattern: RegExp, isHeld: (method: string) => boolean) {
  const sent: string[] = [];
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const hold = async (route: Route) => {
    const method = route.request().method();
    if (!isHeld(method)) return route.fallback();
    sent.push(`${method} ${new URL(route.request().url()).pathname}`);
    await released;
    // The page may have been left meanwhile.
    await route.fallback().catch(() => undefined);
  };
  await page.route(pattern, hold);
  return { sent, release, stop: () => page.unroute(pattern, hold) };
}

interface Press {
  /** The path of the change. */
  readonly change: RegExp;
  /** What the page asks for after it, before it shows what is new; it is held back, too. */
  readonly reads?: RegExp;
  /** The page is left: what it reads is the next one. */
  readonly leaves?: true;
  /** What is to be seen in the end. */
  readonly done: () => Promise<unknown>;
}

const click = (button: Locator) => button.evaluate((one: HTMLElement) => one.click());

/** Nothing can be asked of a page that is being left, so it presses by itself, and says so. */
async function keepPressing(page: Page, button: Locator): Promise<() => Promise<void>> {
  let presses = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/api/time?pressed')) presses += 1;
  });
  await button.evaluate((one: HTMLElement) => {
    setInterval(() => {
      one.click();
      void fetch('/api/time?pressed').catch(() => undefined);
    }, 100);
  });
  return async () => {
    const before = presses;
    await expect.poll(() => presses).toBeGreaterThan(before + 1);
  };
}

/** Presses a button again and again until its change is done; one request was sent. */
async function press(page: Page, button: Locator, how: Press): Promise<void> {
  const { change, reads, leaves, done } = how;
  const changes = await holdBack(page, change, (method) => method !== 'GET');
  const later = reads && (await holdBack(page, reads, (method) => method === 'GET'));
  await button.dblclick();
  await expect(button).toHaveAttribute('aria-disabled', 'true');
  await expect(button.locator('.spinning')).toBeVisible();
  await expect.poll(() => changes.sent.length).toBe(1);
  const pressAgain = leaves ? await keepPressing(page, button) : () => click(button);
  await pressAgain();
  const before = later?.sent.length ?? 0;
  changes.release();
  if (later) {
    await expect.poll(() => later.sent.length).toBeGreaterThan(before);
    await pressAgain();
    await pressAgain();
    later.release();
  }
  await done();
  await changes.stop();
  await later?.stop();
  expect(changes.sent, String(change)).toHaveLength(1);
}

async function sale(options: SaleOptions): Promise<string> {
  const organiser = await Organiser.logIn();
  const eventId = await organiser.createSale(options);
  await organiser.dispose();
  return eventId;
}

const shown = (page: Page, text: string | RegExp) => () =>
  expect(page.getByText(text).first()).toBeVisible({ timeout: 20_000 });

test('seats are held, paid and cancelled, all on a slow network', async ({ page }) => {
  test.slow();
  const patient = { timeout: 30_000 };
  const eventId = await sale({ grid: { rows: 1, seatsPerRow: 6 } });
  await logIn(page, await registerFan('slow'));
  await slowDown(page);
  await page.goto(`/events/${eventId}/seats`, patient);
  await page.getByRole('button', { name: '목록', exact: true }).click(patient);
  await page.locator('[data-section="0"]').click();
  await page.locator('.seat[aria-pressed="false"]').first().click();
  await press(page, page.locator('.bar .line .lg'), {
    change: /\/api\/seats\/reserve$/,
    done: () => page.waitForURL(/\/checkout\/reservation\//, patient),
  });

  await page.getByLabel(/결제에 동의합니다/).check(patient);
  await press(page, page.locator('main button[type="submit"]'), {
    change: /\/api\/payments\/prepare$/,
    reads: /\/sandbox\/pay\?/,
    leaves: true,
    done: () => page.waitForURL(/\/sandbox\/pay/, patient),
  });
  await chooseCard(page);
  await expect(page.getByRole('heading', { name: '예매 완료' })).toBeVisible(patient);
  await page.getByRole('link', { name: '티켓 보기' }).click();
  await expect(page.getByRole('img', { name: /QR/ })).toBeVisible(patient);

  await page.getByRole('button', { name: '예매 취소' }).click();
  await press(page, page.locator('dialog[open] .danger'), {
    change: /\/api\/reservations\/[^/]+\/cancel$/,
    done: () => expect(page.locator('.notice[role="status"]')).toContainText('원', patient),
  });
});

test('standing tickets and the best seats are held, and given up', async ({ page }) => {
  const [standing, seated] = [
    await sale({ tickets: 20 }),
    await sale({ grid: { rows: 1, seatsPerRow: 6 } }),
  ];
  await logIn(page, await registerFan('holder'));
  await page.goto(`/events/${standing}/book`);
  await page.getByRole('button', { name: '하나 늘리기' }).first().click();
  await press(page, page.locator('.bar .line .lg'), {
    change: /\/api\/reservations$/,
    done: () => page.waitForURL(/\/checkout\/reservation\//),
  });

  await page.goto(`/events/${seated}/seats`);
  await page.getByRole('button', { name: '자동 선택' }).click();
  await press(page, page.locator('dialog[open] button[type="submit"]'), {
    change: /\/api\/seats\/best$/,
    done: () => expect(page.locator('.chosen li')).toHaveCount(2),
  });
  await press(page, page.getByRole('button', { name: '포기' }), {
    change: /\/api\/reservations\/[^/]+$/,
    done: () => expect(page.getByRole('button', { name: '포기' })).toHaveCount(0),
  });
});

test('a membership is joined, a ticket listed and withdrawn', async ({ page }) => {
  const organiser = await Organiser.logIn();
  const [artist, other] = [await organiser.createArtist(), await organiser.createArtist()];
  await organiser.dispose();
  const eventId = await sale({ grid: { rows: 1, seatsPerRow: 4 }, artistId: artist.id });
  await logIn(page, await registerFan('seller'));
  await join(page.request, artist.id);
  const id = await holdSeats(page.request, eventId, [0]);
  await payNow(page.request, { reservationId: id });

  await page.goto(`/artists/${other.id}`);
  await press(page, page.locator('.panel button.primary'), {
    change: /\/api\/memberships\/subscribe$/,
    done: () => page.waitForURL(/\/checkout\/membership\//),
  });

  await page.goto(`/my/reservations/${id}`);
  await page.getByRole('button', { name: '양도하기' }).click();
  await press(page, page.getByRole('button', { name: '마켓에 올리기' }), {
    change: /\/api\/transfers$/,
    done: shown(page, '양도 마켓에 올라가 있습니다'),
  });
  await press(page, page.getByRole('button', { name: '양도 취소' }), {
    change: /\/api\/transfers\/[^/]+\/cancel$/,
    reads: /\/api\/transfers\/my/,
    done: () => expect(page.getByRole('button', { name: '양도 취소' })).toHaveCount(0),
  });
});

test('a post and a comment are published, changed and deleted', async ({ page }) => {
  await logIn(page, await registerFan('writer'));
  await page.goto(`/community/write?artist=${await firstArtist(page)}`);
  await page.getByLabel('제목').fill('한 번만 올린 글');
  await page.getByLabel('내용').fill('좋았어요.');
  await press(page, page.locator('main button[type="submit"]'), {
    change: /\/api\/community\/posts$/,
    done: () => expect(page.getByRole('heading', { level: 1 })).toHaveText('한 번만 올린 글'),
  });
  await page.getByLabel('댓글 쓰기').fill('저도요!');
  await press(page, page.getByRole('button', { name: '등록' }), {
    change: /\/comments$/,
    done: shown(page, '저도요!'),
  });
  await page.getByRole('link', { name: '고치기' }).click();
  await page.getByLabel('제목').fill('고친 글');
  await press(page, page.locator('main button[type="submit"]'), {
    change: /\/api\/community\/posts\/[^/]+$/,
    done: () => expect(page.getByRole('heading', { level: 1 })).toHaveText('고친 글'),
  });
  await page.getByRole('button', { name: '삭제', exact: true }).click();
  await press(page, page.locator('dialog[open] .danger'), {
    change: /\/api\/community\/posts\/[^/]+$/,
    done: () => page.waitForURL(/\/community$/),
  });
});

test('somebody registers, logs in, and asks for a new password', async ({ page }) => {
  const email = `pressed.${process.pid}.${Date.now()}@example.com`;
  await page.goto('/register');
  await page.getByLabel('모두 동의합니다').check();
  await page.getByRole('button', { name: '다음' }).click();
  await page.getByLabel('이름').fill('이강변');
  await page.getByLabel('이메일').fill(email);
  await page.getByLabel('비밀번호', { exact: true }).fill('a long enough secret');
  await press(page, page.locator('main button[type="submit"]'), {
    change: /\/api\/auth\/register$/,
    done: () => expect(page.getByRole('button', { name: '계속하기' })).toBeVisible(),
  });
  await page.getByRole('button', { name: '이강변' }).click();
  await press(page, page.locator('#account-menu button'), {
    change: /\/api\/auth\/logout$/,
    done: () => expect(page.locator('#account-menu')).toHaveCount(0),
  });

  await page.goto('/forgot');
  await page.getByLabel('이메일').fill(email);
  await press(page, page.locator('main button[type="submit"]'), {
    change: /\/api\/auth\/password\/forgot$/,
    done: shown(page, '메일함을 확인해 주세요'),
  });
  await page.goto('/login?return=/my/memberships');
  await page.getByLabel('이메일').fill(email);
  await page.getByLabel('비밀번호').fill('a long enough secret');
  await press(page, page.locator('main button[type="submit"]'), {
    change: /\/api\/auth\/login$/,
    done: () => page.waitForURL(/\/my\/memberships$/),
  });
});

test('an account is changed, and an alert asked for', async ({ page }) => {
  const eventId = await sale({ tickets: 20, opensInSeconds: 7_200 });
  const account = await verifiedFan('keeper');
  await logIn(page, account);
  await page.goto('/my/account');
  await page.getByLabel('이름').fill('이강변');
  const profile = page.locator('form').filter({ has: page.getByLabel('이름') });
  await press(page, profile.locator('button[type="submit"]'), {
    change: /\/api\/auth\/me$/,
    done: shown(page, '저장했습니다.'),
  });
  await page.getByLabel('현재 비밀번호').first().fill(account.password);
  await page.getByLabel('새 비밀번호').fill('another long secret');
  await press(page, page.getByRole('button', { name: '비밀번호 바꾸기' }), {
    change: /\/api\/auth\/password$/,
    done: shown(page, '비밀번호를 바꿨습니다.'),
  });
  const asked = page.waitForResponse(/\/api\/alerts$/);
  await page.goto(`/events/${eventId}`);
  await asked;
  await press(page, page.locator('.sale-action button'), {
    change: /\/api\/alerts\/events\/[^/]+\/sale$/,
    reads: /\/api\/alerts$/,
    done: () => expect(page.getByRole('button', { name: '알림 신청됨' })).toBeVisible(),
  });
});
