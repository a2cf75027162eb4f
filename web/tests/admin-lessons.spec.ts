/** Mistakes that organisers' pages of this kind have made before: `docs/LESSONS.md`. */
import {
  adminApi,
  apiOf,
  createPlace,
  createStanding,
  type Place,
  registerWorker,
  type Worker,
} from './admin';
import { expect, holdTickets, logIn, otherFan, payNow, test } from './fan';
import { unique } from './organiser';

// A new event is not known everywhere at once.
test.use({ accountOf: 'lessons', allowed: /404/ });

let organiser: Worker;
let place: Place;

test.beforeAll(async () => {
  organiser = await registerWorker('organiser', 'lessons');
  const api = await adminApi();
  place = await createPlace(api);
  await api.dispose();
});

test.describe('far from Korea', () => {
  test.use({ timezoneId: 'America/New_York' });

  test('W-6 an edit leaves the times where they were', async ({ page }) => {
    const api = await apiOf(organiser);
    const id = await createStanding(api, place.venueId, { opensInDays: 5 });
    const read = async () => (await (await api.get(`/api/admin/events/${id}`)).json()).event;
    const before = await read();
    await logIn(page, organiser);
    await page.goto(`/admin/events/${id}/edit`);
    const inKorea = new Date(Date.parse(before.saleStartsAt) + 9 * 3_600_000).toISOString();
    await expect(page.getByLabel('예매 시작')).toHaveValue(inKorea.slice(0, 16));
    await page.getByLabel('공연 소개').fill('시각은 그대로입니다.');
    await page.getByRole('button', { name: '저장' }).click();
    await expect.poll(async () => (await read()).description).toBe('시각은 그대로입니다.');
    const { startsAt, saleStartsAt, saleEndsAt } = await read();
    expect({ startsAt, saleStartsAt, saleEndsAt }).toEqual({
      startsAt: before.startsAt,
      saleStartsAt: before.saleStartsAt,
      saleEndsAt: before.saleEndsAt,
    });
    await api.dispose();
  });
});

test('W-14 the statistics show what was sold', async ({ page }) => {
  const api = await apiOf(organiser);
  const title = unique('통계 공연');
  const id = await createStanding(api, place.venueId, { title, tickets: 10 });
  const fan = await otherFan('counted');
  await expect(async () => {
    await payNow(fan, { reservationId: await holdTickets(fan, id, 2) });
  }).toPass({ timeout: 20_000 });
  await expect
    .poll(
      async () => {
        const { data } = await (await api.get('/api/stats/events?limit=50')).json();
        return data.find((row: { id: string }) => row.id === id)?.soldSeats;
      },
      { timeout: 20_000 },
    )
    .toBe(2);
  await logIn(page, organiser);
  await page.goto('/admin/statistics');
  const row = page.getByRole('row', { name: new RegExp(title) });
  await expect(row).toContainText('110,000원');
  await expect(row).toContainText('2 / 10');
  await api.dispose();
});

test('W-16 the times of a sale are asked for before anything is sent', async ({ page }) => {
  await logIn(page, organiser);
  await page.goto('/admin/events/new');
  await page.getByLabel('공연 제목').fill(unique('날짜 없는 공연'));
  const next = page.getByRole('button', { name: '다음' });
  await next.click();
  await page.getByLabel('공연장', { exact: true }).selectOption(place.venueId);
  await page.getByLabel('홀', { exact: true }).selectOption(place.hallId);
  await next.click();
  for (const grade of ['VIP', 'R']) await page.getByLabel(`${grade} 가격(원)`).fill('1000');
  await next.click();
  await next.click();
  await expect(page.getByText('날짜와 시각을 입력해 주세요.')).toHaveCount(3);
  await expect(page.getByLabel('공연 시작')).toBeFocused();
});
