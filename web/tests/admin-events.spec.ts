/** An organiser's event from the first draft to its cancellation. */
import {
  adminApi,
  apiOf,
  createArtist,
  createPlace,
  createStanding,
  expectGoodPage,
  pageOf,
  type Place,
  registerWorker,
  seoulTime,
  tabTo,
  type Worker,
} from './admin';
import { dialogAtRest, expect, holdTickets, logIn, otherFan, payNow, test } from './fan';
import { unique } from './organiser';

// A new event is not known everywhere at once.
test.use({ accountOf: 'adminevents', allowed: /404/ });

let organiser: Worker;
let maker: Worker;
let place: Place;
let artist: { id: string; name: string };

test.beforeAll(async () => {
  organiser = await registerWorker('organiser', 'wizard');
  maker = await registerWorker('organiser', 'maker');
  const api = await adminApi();
  [place, artist] = [await createPlace(api), await createArtist(api)];
  await api.dispose();
});

test('an organiser creates an event with a pre-sale and a lottery, and a fan sees it', async ({
  page,
  browser,
}) => {
  test.slow();
  await logIn(page, maker);
  const title = unique('겨울밤 콘서트');
  await page.goto('/admin/events');
  await page.getByRole('link', { name: '새 공연' }).first().click();

  // A step that lacks something says so, and the focus is on the field.
  await page.getByRole('button', { name: '다음' }).click();
  await expect(page.getByLabel('공연 제목')).toBeFocused();
  await expect(page.getByText('제목을 입력해 주세요.')).toBeVisible();
  await page.getByLabel('공연 제목').fill(title);
  await page.getByLabel('아티스트').selectOption({ label: artist.name });
  await page.getByLabel('관람 시간(분)').fill('120');
  await page.getByLabel('포스터').setInputFiles({
    name: 'poster.png',
    mimeType: 'image/png',
    buffer: Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    ),
  });
  await expect(page.getByAltText('올린 포스터')).toBeVisible();
  await page.getByRole('button', { name: '다음' }).click();

  await page.getByLabel('공연장', { exact: true }).selectOption(place.venueId);
  await page.getByLabel('홀', { exact: true }).selectOption(place.hallId);
  await page.getByRole('button', { name: '다음' }).click();

  await page.getByLabel('VIP 가격(원)').fill('165,000');
  await page.getByLabel('R 가격(원)', { exact: true }).fill('99000');
  // A reload loses nothing.
  await page.reload();
  await expect(page.getByText('쓰던 초안을 이어서 보여 드립니다.')).toBeVisible();
  await expect(page.getByLabel('VIP 가격(원)')).toHaveValue('165,000');
  await page.getByRole('button', { name: '다음' }).click();

  await page.getByLabel('공연 시작').fill(seoulTime(60, '19:30'));
  await page.getByLabel('예매 시작').fill(seoulTime(10, '20:00'));
  await page.getByLabel('예매 마감').fill(seoulTime(9, '20:00'));
  await page.getByRole('button', { name: '다음' }).click();
  await expect(page.getByText('예매 마감은 예매 시작보다 뒤여야 합니다.')).toBeVisible();
  await page.getByLabel('예매 마감').fill(seoulTime(59, '20:00'));
  await page.getByRole('button', { name: '다음' }).click();

  await page.getByLabel('멤버십 선예매').check();
  await page.getByLabel('추첨 순서로 입장').check();
  await page.getByRole('button', { name: '다음' }).click();
  await page.getByLabel('구매 한도').selectOption('2');
  await page.getByRole('button', { name: '다음' }).click();

  await expect(page.getByText('165,000원')).toBeVisible();
  await expectGoodPage(page);
  await page.getByRole('button', { name: '공개하기' }).click();
  await expect(page).toHaveURL(/\/admin\/events\/[0-9a-f-]{36}$/);
  await expect(page.getByText(title).first()).toBeVisible();
  await expect(page.getByText('추첨', { exact: true })).toBeVisible();
  const id = page.url().split('/').at(-1) ?? '';

  // The draft is gone: the next event begins empty.
  await page.goto('/admin/events/new');
  await expect(page.getByLabel('공연 제목')).toHaveValue('');

  const fan = await browser.newPage({ baseURL: process.env.URR_URL ?? '', locale: 'ko-KR' });
  await fan.goto(`/events/${id}`);
  await expect(fan.getByRole('heading', { name: title })).toBeVisible();
  await expect(fan.getByText('선예매 시각')).toBeVisible();
  await expect(fan.getByText('165,000원')).toBeVisible();
  const api = await apiOf(maker);
  await expect
    .poll(async () => (await (await api.get(`/api/queue/draw/${id}`)).json()).commitment)
    .toMatch(/^[0-9a-f]{64}$/);
  await fan.close();
});

test.describe('with a lost answer', () => {
  test.use({ allowed: /404|504/ });

  test('a lost answer makes no second event', async ({ page }) => {
    await logIn(page, organiser);
    const title = unique('한 번만');
    await page.goto('/admin/events/new');
    await page.getByLabel('공연 제목').fill(title);
    await page.getByRole('button', { name: '다음' }).click();
    await page.getByRole('radio', { name: /^스탠딩/ }).check();
    await page.getByLabel('공연장', { exact: true }).selectOption(place.venueId);
    await page.getByRole('button', { name: '다음' }).click();
    await page.getByLabel('권종 이름').fill('스탠딩 A');
    await page.getByLabel('가격(원)').fill('44000');
    await page.getByLabel('수량').fill('300');
    await page.getByRole('button', { name: '다음' }).click();
    await page.getByLabel('공연 시작').fill(seoulTime(60, '19:30'));
    await page.getByLabel('예매 시작').fill(seoulTime(10, '20:00'));
    await page.getByLabel('예매 마감').fill(seoulTime(50, '20:00'));
    for (const step of ['오픈 방식', '구매 규칙', '확인과 공개']) {
      await page.getByRole('button', { name: '다음' }).click();
      await expect(page.getByRole('heading', { level: 2, name: step })).toBeVisible();
    }
    // The server answers, but the answer never arrives.
    let calls = 0;
    await page.route('**/api/admin/events', async (route) => {
      if (route.request().method() !== 'POST') return route.fallback();
      calls += 1;
      await route.fetch();
      await route.fulfill({ status: 504, json: { code: 'UPSTREAM_TIMEOUT', error: '' } });
    });
    await page.getByRole('button', { name: '공개하기' }).click();
    await expect(page.getByRole('alert')).toBeVisible();
    expect(calls).toBe(1);
    await page.unroute('**/api/admin/events');
    await page.reload();
    await page.getByRole('button', { name: '공개하기' }).click();
    await expect(page).toHaveURL(/\/admin\/events\/[0-9a-f-]{36}$/);
    const api = await apiOf(organiser);
    const { events } = await (
      await api.get(`/api/admin/events?q=${encodeURIComponent(title)}`)
    ).json();
    expect(events).toHaveLength(1);
  });
});

test('a sold event is moved and cancelled, with what must be typed', async ({ page }) => {
  test.slow();
  const api = await apiOf(organiser);
  const title = unique('옮길 공연');
  const id = await createStanding(api, place.venueId, { title });
  const fan = await otherFan('mover');
  await expect(async () => {
    const referenceId = await holdTickets(fan, id);
    await payNow(fan, { paymentType: 'reservation', referenceId });
  }).toPass({ timeout: 20_000 });

  await logIn(page, organiser);
  await page.goto(`/admin/events/${id}`);
  await expect(page.getByText('55,000원').first()).toBeVisible();
  await page.getByRole('button', { name: '일정 변경' }).click();
  await dialogAtRest(page);
  await page.getByLabel('새 공연 시작').fill(seoulTime(45, '18:00'));
  await expectGoodPage(page);
  await page.getByRole('button', { name: '일정 변경하기' }).click();
  await expect(page.getByText('일정을 변경했습니다.')).toBeVisible();
  await expect
    .poll(async () => (await (await api.get(`/api/events/${id}`)).json()).event.startsAt)
    .toBe(new Date(`${seoulTime(45, '18:00')}:00+09:00`).toISOString().replace('.000', ''));

  await page.getByRole('button', { name: '공연 취소' }).click();
  await dialogAtRest(page);
  const confirm = page.getByRole('button', { name: '공연 취소하기' });
  await page.getByLabel('취소 사유').fill('출연자 사정');
  await expect(confirm).toBeDisabled();
  await page.getByLabel(`계속하려면 입력: ${title}`).fill(`${title} 아님`);
  await expect(confirm).toBeDisabled();
  await page.getByLabel(`계속하려면 입력: ${title}`).fill(title);
  await expectGoodPage(page);
  await confirm.click();
  await expect(page.getByText('취소된 공연입니다.', { exact: false }).first()).toBeVisible();
  await expect
    .poll(
      async () => {
        const { reservations } = await (await fan.get('/api/reservations/my')).json();
        return reservations?.[0]?.status;
      },
      { timeout: 20_000 },
    )
    .toBe('cancelled');
});

test.describe('with refusals', () => {
  test.use({ allowed: /403|404|409/ });

  test('another organiser sees none of it', async ({ page }) => {
    const api = await apiOf(organiser);
    const title = unique('남의 공연');
    const id = await createStanding(api, place.venueId, { title });
    const other = await registerWorker('organiser', 'other');
    await logIn(page, other);
    await page.goto(`/admin/events?q=${encodeURIComponent(title)}`);
    await expect(page.getByRole('heading', { name: '조건에 맞는 공연이 없습니다' })).toBeVisible();
    await page.goto(`/admin/events/${id}`);
    await expect(page.getByRole('heading', { name: '볼 수 없는 공연입니다' })).toBeVisible();
    await expect(page.getByText(title)).toHaveCount(0);
    for (const path of ['edit', 'tickets', 'staff']) {
      await page.goto(`/admin/events/${id}/${path}`);
      await expect(page.getByRole('heading', { name: '볼 수 없는 공연입니다' })).toBeVisible();
    }
  });

  test('edits by two people do not overwrite each other', async ({ page }) => {
    const api = await apiOf(organiser);
    const id = await createStanding(api, place.venueId, { opensInDays: 5 });
    await logIn(page, organiser);
    await page.goto(`/admin/events/${id}/edit`);
    await page.getByLabel('공연 소개').fill('내가 쓴 소개');
    const { event } = await (await api.get(`/api/admin/events/${id}`)).json();
    const data = { revision: event.revision, description: '다른 사람이 쓴 소개' };
    expect((await api.put(`/api/admin/events/${id}`, { data })).ok()).toBe(true);
    await page.getByRole('button', { name: '저장' }).click();
    await expect(page.getByRole('button', { name: '새 내용 불러오기' })).toBeVisible();
    // What was typed is still there until it is given up.
    await expect(page.getByLabel('공연 소개')).toHaveValue('내가 쓴 소개');
    await page.getByRole('button', { name: '새 내용 불러오기' }).click();
    await expect(page.getByLabel('공연 소개')).toHaveValue('다른 사람이 쓴 소개');
  });
});

test('the wizard works by keyboard alone', async ({ page }) => {
  test.slow();
  await logIn(page, organiser);
  await page.goto('/admin/events/new');
  await page.getByLabel('공연 제목').waitFor();
  await tabTo(page, /^공연 제목/);
  const title = unique('자판으로');
  await page.keyboard.type(title);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 2, name: '장소' })).toBeFocused();
  await tabTo(page, /^지정석/);
  await page.keyboard.press('ArrowDown');
  await tabTo(page, /^공연장$/);
  await expect(page.locator(`option[value="${place.venueId}"]`)).toBeAttached();
  const venue = page.getByLabel('공연장', { exact: true });
  while ((await venue.inputValue()) !== place.venueId) await page.keyboard.press('ArrowDown');
  await tabTo(page, /^다음/);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 2, name: '가격' })).toBeFocused();
  await tabTo(page, /^권종 이름/);
  await page.keyboard.type('스탠딩');
  await tabTo(page, /^가격\(원\)/);
  await page.keyboard.type('33000');
  await tabTo(page, /^수량/);
  await page.keyboard.type('20');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 2, name: '일시' })).toBeFocused();
  for (const [field, days] of [
    ['공연 시작', 60],
    ['예매 시작', 10],
    ['예매 마감', 50],
  ] as const) {
    await tabTo(page, new RegExp(`^${field}`));
    const [date = '', time = ''] = seoulTime(days, '20:00').split('T');
    const [year = '', month = '', day = ''] = date.split('-');
    const [hour = ''] = time.split(':');
    // The order of the browser's own language, which is English here.
    await page.keyboard.type(`${month}${day}${year}`);
    await page.keyboard.type(`${String(Number(hour) % 12 || 12).padStart(2, '0')}00`);
    await page.keyboard.press(Number(hour) >= 12 ? 'p' : 'a');
    await expect(page.getByLabel(field, { exact: true })).toHaveValue(seoulTime(days, '20:00'));
  }
  await page.keyboard.press('Enter');
  for (const step of ['오픈 방식', '구매 규칙', '확인과 공개']) {
    if (step !== '오픈 방식') {
      await tabTo(page, /^다음/);
      await page.keyboard.press('Enter');
    }
    await expect(page.getByRole('heading', { level: 2, name: step })).toBeFocused();
  }
  await tabTo(page, /^공개하기/);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/admin\/events\/[0-9a-f-]{36}$/);
  await expect(page.getByText(title).first()).toBeVisible();
});

for (const [locale, tag] of [
  ['ko', 'ko-KR'],
  ['en', 'en-GB'],
] as const) {
  test(`the pages of events are good at 360 pixels: ${locale}`, async ({ browser }) => {
    test.slow();
    const api = await apiOf(organiser);
    const id = await createStanding(api, place.venueId, {});
    const page = await pageOf(browser, organiser, {
      locale: tag,
      viewport: { width: 360, height: 740 },
    });
    for (const path of ['', '/new', `/${id}`, `/${id}/edit`, `/${id}/tickets`, `/${id}/staff`]) {
      await page.goto(`/admin/events${path}`);
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
      await page.waitForLoadState('networkidle');
      await expectGoodPage(page, locale);
    }
    for (const step of [1, 2, 3, 4, 5, 6]) {
      await page.goto('/admin/events/new');
      await page.evaluate(
        ([user, name]) => {
          const key = `urr.admin.eventDraft.${user}`;
          const kept = JSON.parse(localStorage.getItem(key) ?? 'null');
          if (kept) localStorage.setItem(key, JSON.stringify({ ...kept, step: name }));
        },
        [organiser.id, ['place', 'prices', 'times', 'opening', 'rules', 'review'][step - 1]],
      );
      await page.reload();
      await expect(page.getByRole('heading', { level: 2 }).first()).toBeVisible();
      await expectGoodPage(page, locale);
    }
    await page.context().close();
  });
}
