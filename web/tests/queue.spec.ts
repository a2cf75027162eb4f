/** The waiting page, which the program makes. The page is real; a test decides what the room says. */
import type { Page } from '@playwright/test';
import {
  changeAnswer,
  eventWith,
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  SAME_ORIGIN,
  test,
} from './fan';

const waiting = {
  status: 'queued',
  queued: true,
  phase: 'open',
  number: 900,
  position: 42,
  peopleAhead: 41,
  peopleBehind: 1200,
  estimatedWait: 120,
  estimatedWaitRange: { from: 90, to: 240 },
  queueSize: 1242,
  currentUsers: 100,
  threshold: 100,
  nextPoll: 0.5,
  opensAt: null,
  soldOut: false,
  message: '무대 점검 중입니다',
  text: null,
};

/** Answers of the room, which a test may change while the page is open. */
async function room(page: Page, first: Partial<typeof waiting> = {}) {
  const state = { status: { ...waiting, ...first } as Record<string, unknown>, isDown: false };
  await page.route(/\/api\/queue\/(check|status)\//, async (route) => {
    if (state.isDown) await route.abort('internetdisconnected');
    else await route.fulfill({ json: state.status });
  });
  await page.route('/api/queue/crowd/*', async (route) => {
    const { message, soldOut } = state.status;
    await changeAnswer(route, (crowd) => ({ ...crowd, message, soldOut }));
  });
  return state;
}

async function waitingPage(page: Page): Promise<string> {
  return `/queue/${await eventWith(page, 'on_sale')}`;
}

test.use({ viewport: { width: 360, height: 740 } });

test('W-10 shows the place that the server says and what it means, and keeps it over a reload', async ({
  fanPage: page,
}) => {
  await room(page);
  await page.goto(await waitingPage(page));
  const figure = page.getByRole('heading', { level: 1 }).filter({ visible: true });
  await expect(figure).toContainText('42번째');
  await expect(page.getByText('41명')).toBeVisible();
  await expect(page.getByText('2분 ~ 4분')).toBeVisible();
  await expect(page.getByText('무대 점검 중입니다').first()).toBeVisible();
  await expect(page).toHaveTitle(/^42번째/);
  await expect(page.getByRole('status')).toContainText('42번째');
  await expectAccessible(page);
  await expectNoSidewaysScroll(page);
  await page.reload();
  await expect(figure).toContainText('42번째');
});

test('announces the turn and counts a minute', async ({ fanPage: page }) => {
  const state = await room(page);
  await page.goto(await waitingPage(page));
  await expect(page.getByText('41명')).toBeVisible();
  const ends = new Date(Date.now() + 600_000).toISOString();
  state.status = { ...waiting, status: 'active', queued: false, position: null, nextPoll: 3 };
  Object.assign(state.status, { slotEndsAt: ends, slotLastEnd: ends });
  await expect(page.getByRole('heading', { name: '입장하실 차례입니다' })).toBeVisible();
  await expect(page).toHaveTitle(/입장하실 차례입니다/);
  await expect(page.locator('link[rel="icon"]')).toHaveAttribute('href', /^data:image\/svg/);
  await expect(page.getByText(/\d+초 뒤 자동으로 이동합니다/)).toBeVisible();
  await expect(page.getByRole('link', { name: '예매하러 가기' })).toHaveAttribute(
    'href',
    /\/events\/.+\/(seats|book)$/,
  );
  await expectAccessible(page);
});

test('goes on by itself after the minute, which a reload does not lengthen', async ({
  fanPage: page,
}) => {
  const state = await room(page);
  const path = await waitingPage(page);
  await page.goto(path);
  await expect(page.getByText('41명')).toBeVisible();
  const ends = new Date(Date.now() + 600_000).toISOString();
  state.status = { ...waiting, status: 'active', queued: false, position: null, nextPoll: 3 };
  Object.assign(state.status, { slotEndsAt: ends, slotLastEnd: ends });
  const left = async () =>
    Number((await page.getByText(/\d+초 뒤/).innerText()).match(/(\d+)초 뒤/)?.[1]);
  await expect.poll(left).toBeGreaterThan(50);
  await expect.poll(left).toBeLessThan(56);
  await page.reload();
  await expect.poll(left).toBeLessThan(57);

  // The minute is nearly over: the page goes on without a click.
  const key = `urr.queue.${path.split('/').at(-1)}.turn`;
  await page.evaluate((name) => {
    const [slot] = (sessionStorage.getItem(name) ?? '').split('|');
    sessionStorage.setItem(name, `${slot}|${Date.now() + 2_000}`);
  }, key);
  await page.reload();
  await page.waitForURL(/\/events\/.+\/(seats|book)$/);
});

test('counts down to the opening by the time of the server', async ({ fanPage: page }) => {
  // The clock of the device is an hour ahead.
  await page.addInitScript(() => {
    const now = Date.now.bind(Date);
    Date.now = () => now() + 3_600_000;
  });
  const { events } = await (await page.request.get('/api/events?status=upcoming')).json();
  const event = events.at(-1);
  await page.goto(`/queue/${event.id}`);
  await expect(page.locator('main')).toHaveAttribute('data-state', 'early');
  const shown = page.locator('[data-f="clock"]');
  await expect(shown).toContainText(/\d+일 \d\d:\d\d:\d\d/);
  await expect(async () => {
    const [, days, hours, minutes, seconds] = (await shown.innerText())
      .match(/(\d+)일 (\d\d):(\d\d):(\d\d)/)!
      .map(Number);
    const left = ((days! * 24 + hours!) * 60 + minutes!) * 60 + seconds!;
    const { gathersAt, opensAt } = await (
      await page.request.get(`/api/queue/crowd/${event.id}`)
    ).json();
    const real = (Date.parse(gathersAt ?? opensAt) - Date.now()) / 1_000;
    expect(Math.abs(left - real)).toBeLessThan(5);
  }).toPass();
  await expectAccessible(page);
  await expectNoSidewaysScroll(page);
});

test('a room that stands still, and a refusal, are explained', async ({ fanPage: page }) => {
  const state = await room(page);
  await page.goto(await waitingPage(page));
  await expect(page.getByText('41명')).toBeVisible();
  const paused = page.locator('[data-f="paused"]');
  await expect(paused).toBeHidden();
  state.status = { ...waiting, phase: 'paused' };
  await expect(paused).toBeVisible();
  await expectAccessible(page);
  state.status = { ...waiting, status: 'not_in_queue', queued: false, position: null };
  await expect(page.locator('main')).toHaveAttribute('data-state', 'stop');
  await expect(page.getByRole('link', { name: '공연 페이지로' })).toBeVisible();
  await expectAccessible(page);
});

test('rings and notifies at the turn, only for those who asked for it', async ({
  fanPage: page,
}) => {
  await page.addInitScript(() => {
    const told: string[] = ((window as unknown as { told: string[] }).told = []);
    class FakeNotification {
      static permission = 'default';
      static requestPermission = async () => {
        told.push('asked');
        return (FakeNotification.permission = 'granted');
      };
      constructor(title: string) {
        told.push(title);
      }
    }
    const play = AudioContext.prototype.createOscillator;
    AudioContext.prototype.createOscillator = function () {
      told.push('tone');
      return play.call(this);
    };
    Object.assign(window, { Notification: FakeNotification });
  });
  const told = () => page.evaluate(() => (window as unknown as { told: string[] }).told);
  const state = await room(page);
  await page.goto(await waitingPage(page));
  await expect(page.getByText('41명')).toBeVisible();
  expect(await told()).toEqual([]);
  await page.getByRole('button', { name: '소리와 알림으로 알려 주기' }).click();
  await expect(page.getByRole('button', { name: '소리와 알림이 켜졌습니다' })).toBeDisabled();
  expect(await told()).toContain('asked');
  const before = (await told()).length;
  const ends = new Date(Date.now() + 600_000).toISOString();
  state.status = { ...waiting, status: 'active', queued: false, position: null, nextPoll: 3 };
  Object.assign(state.status, { slotEndsAt: ends, slotLastEnd: ends });
  await expect(page.getByRole('heading', { name: '입장하실 차례입니다' })).toBeVisible();
  const after = (await told()).slice(before);
  expect(after).toContain('입장하실 차례입니다');
  expect(after).toContain('tone');
});

test('says at once that everything is sold', async ({ fanPage: page }) => {
  const state = await room(page);
  await page.goto(await waitingPage(page));
  await expect(page.getByText('41명')).toBeVisible();
  await expect(page.getByRole('alert')).toBeHidden();
  state.status = { ...waiting, soldOut: true };
  await expect(page.getByRole('alert')).toContainText('모든 티켓이 판매되었습니다');
  const alert = page.getByRole('link', { name: '취소표 알림 받기' });
  await expect(alert).toHaveAttribute('href', /^\/events\/[0-9a-f-]{36}#seat-alert$/);
  await expectAccessible(page);
});

test.describe('without a network', () => {
  test.use({ allowed: /ERR_INTERNET_DISCONNECTED/ });

  test('says so, keeps the place on the page, and goes on', async ({ fanPage: page }) => {
    const state = await room(page);
    await page.goto(await waitingPage(page));
    await expect(page.getByText('41명')).toBeVisible();
    state.isDown = true;
    await expect(page.getByText('연결이 끊겼습니다').last()).toBeVisible();
    await expect(page.getByText('41명')).toBeVisible();
    state.isDown = false;
    state.status = { ...waiting, position: 7, peopleAhead: 6 };
    await expect(page.getByText('6명', { exact: true })).toBeVisible({ timeout: 20_000 });
  });
});

test('asks for a login, and comes back', async ({ page }) => {
  const path = await waitingPage(page);
  await page.goto(path);
  const link = page.getByRole('link', { name: '로그인하고 줄 서기' });
  await expect(link).toHaveAttribute('href', `/login?return=${encodeURIComponent(path)}`);
  await expectAccessible(page);
});

test('leaves the line only after a second press, and does not join again by itself', async ({
  fanPage: page,
}) => {
  await room(page);
  await page.goto(await waitingPage(page));
  await page.getByText('줄에서 나가기').click();
  await page.getByRole('button', { name: '순번을 포기하고 나가기' }).click();
  await expect(page.getByRole('heading', { name: '줄에서 나왔습니다' })).toBeVisible();
  await expectAccessible(page);
  await page.reload();
  await expect(page.getByRole('heading', { name: '줄에서 나왔습니다' })).toBeVisible();
});

test.describe('without scripts', () => {
  test.use({ javaScriptEnabled: false });

  test('offers to join by a form', async ({ fanPage: page }) => {
    const path = await waitingPage(page);
    // Another test of the same fan may have entered.
    await page.request.post(`/api${path.replace('/queue/', '/queue/leave/')}`, {
      headers: SAME_ORIGIN,
    });
    await page.goto(path);
    await expect(page).toHaveURL(/\?plain$/);
    await expect(page.getByRole('button', { name: '줄 서기' })).toBeVisible();
  });
});

test('of an event whose sale is over leads to its page', async ({ page }) => {
  for (const [status, heading] of [
    ['ended', '판매가 끝났습니다'],
    ['cancelled', '공연이 취소되었습니다'],
  ] as const) {
    const id = await eventWith(page, status);
    for (const path of [`/queue/${id}`, `/queue/${id}?plain`]) {
      await page.goto(path);
      await expect(page.getByRole('heading', { level: 1, name: heading })).toBeVisible();
      await expectAccessible(page);
    }
    await page.getByRole('link', { name: '공연 페이지로' }).click();
    await expect(page).toHaveURL(new RegExp(`/events/${id}$`));
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  }
});

test.describe('of an event that never existed', () => {
  test.use({ allowed: /404|Not found/ });

  test('is the error page', async ({ page }) => {
    const response = await page.goto('/queue/01a1e1a8-0000-7000-8000-000000000000');
    expect(response?.status()).toBe(404);
    await expect(page.getByRole('heading', { name: '없는 페이지' })).toBeVisible();
    await expectAccessible(page);
  });
});
