/** A sale that opens by lottery, and the page that verifies the draw. */
import { readFileSync } from 'node:fs';
import type { Page } from '@playwright/test';
import {
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  expectOneLanguage,
  logIn,
  otherFan,
  registerFan,
  test,
} from './fan';
import { Organiser } from './organiser';

test.use({ viewport: { width: 360, height: 740 } });

async function look(page: Page, lang: 'ko' | 'en'): Promise<void> {
  await expectAccessible(page);
  await expectNoSidewaysScroll(page);
  await expectOneLanguage(page, lang);
}

test('a lottery is promised, drawn and verified in the browser', async ({ page, browser }) => {
  test.slow();
  const organiser = await Organiser.logIn();
  const lottery = { gatherSeconds: 8, opensInSeconds: 16 };
  const eventId = await organiser.createSale({ lottery, threshold: 1 });
  await logIn(page, await registerFan('entrant'));

  // Before anybody may join the promise is there, and this device notes it.
  await page.goto(`/draws/${eventId}`);
  await expect(page.getByRole('heading', { name: '추첨값을 미리 잠갔습니다' })).toBeVisible();
  const promised = await page.locator('main code').textContent();
  expect(promised).toMatch(/^[0-9a-f]{64}$/);
  await expect(page.getByText('이 기기에 적어 두었습니다')).toBeVisible();
  await look(page, 'ko');

  const others = await Promise.all([1, 2, 3, 4].map((one) => otherFan(`drawn${one}`)));
  await page.goto(`/queue/${eventId}`);
  const heading = page.getByRole('heading', { level: 1 }).filter({ visible: true });
  await expect(heading).toContainText('추첨', { timeout: 20_000 });
  for (const one of others) {
    const joined = await one.post(`/api/queue/check/${eventId}`);
    expect(joined.ok(), await joined.text()).toBe(true);
  }
  await page.getByText('추첨은 공정한가요?').click();
  await expect(page.locator('main code')).toHaveText(promised ?? '');
  await expect(page.getByRole('link', { name: '추첨 결과 확인하기' })).toHaveAttribute(
    'href',
    `/draws/${eventId}`,
  );
  await expectAccessible(page);

  await expect(heading).toHaveText(/번째|입장하실 차례입니다/, { timeout: 30_000 });
  await page.goto(`/draws/${eventId}`);
  // This machine has no network: the page says what is not proved.
  await expect(page.getByRole('heading', { name: '공개 난수를 쓰지 않았습니다' })).toBeVisible();
  await expect(page.getByText('증명되지 않습니다')).toBeVisible();
  await expect(page.getByText('5명이 참여했고')).toBeVisible();
  await expect(page.getByText(/적어 둔 지문과 같습니다/)).toBeVisible();
  await expect(page.locator('.checks li.bad')).toHaveCount(0);
  // The file is the program's, the computation is the page's: the places are those of the line.
  const rank = await page.locator('.rank').textContent();
  const file = await (await page.request.get(`/api/queue/draw/${eventId}/file`)).text();
  expect(file.trimEnd().split('\n')).toHaveLength(17);
  expect(Number(rank?.match(/(\d+)번째/)?.[1])).toBeGreaterThanOrEqual(1);
  expect(Number(rank?.match(/(\d+)번째/)?.[1])).toBeLessThanOrEqual(5);
  await look(page, 'ko');

  // Everybody may check, also without an account.
  const stranger = await browser.newContext({
    locale: 'en-GB',
    baseURL: process.env.URR_URL ?? '',
  });
  const visitor = await stranger.newPage();
  await visitor.goto(`/draws/${eventId}`);
  await expect(
    visitor.getByRole('heading', { name: 'The records of the draw fit, but' }),
  ).toBeVisible();
  await expect(visitor.locator('main').getByRole('link', { name: 'Log in' })).toBeVisible();
  await look(visitor, 'en');

  // A file in which two have changed their places is not believed.
  await visitor.route('**/api/queue/draw/*/file', async (route) => {
    const lines = file.split('\n');
    [lines[12], lines[13]] = [lines[13] ?? '', lines[12] ?? ''];
    await route.fulfill({ contentType: 'text/plain', body: lines.join('\n') });
  });
  await visitor.reload();
  await expect(
    visitor.getByRole('heading', { name: 'The records of the draw do not fit' }),
  ).toBeVisible();
  await expect(visitor.getByText('It is line 14 of the file.')).toBeVisible();
  await look(visitor, 'en');

  for (const one of [...others, organiser]) await one.dispose();
  await stranger.close();
});

test('a draw by the public beacon is fair, and a changed signature is not', async ({ page }) => {
  const specification = readFileSync(new URL('../../docs/DRAW.md', import.meta.url), 'utf8');
  const file = specification.split('```text\n')[1]?.split('```')[0] ?? '';
  const header = Object.fromEntries(
    file
      .split('\n')
      .slice(1, 12)
      .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]),
  );
  const answer = {
    ...header,
    eventId: header.event,
    count: Number(header.count),
    state: 'done',
    beaconRound: 657_413,
    doneAt: '2023-09-15T11:00:10Z',
  };
  let shown: { file: string; answer: Record<string, unknown> } = { file, answer };
  const path = `/api/queue/draw/${header.event}`;
  await page.route(`**${path}`, (route) => route.fulfill({ json: shown.answer }));
  await page.route(`**${path}/file`, (route) =>
    route.fulfill({ contentType: 'text/plain', body: shown.file }),
  );
  await page.route(`**/api/events/${header.event}`, (route) =>
    route.fulfill({
      json: { event: { id: header.event, title: '한강의 밤', startsAt: '2023-10-01T10:00:00Z' } },
    }),
  );
  await page.goto(`/draws/${header.event}`);
  await expect(page.getByRole('heading', { name: '공정한 추첨이었습니다' })).toBeVisible();
  await expect(page.getByText('drand 657,413회차')).toBeVisible();
  await look(page, 'ko');

  const beacon = header.beacon?.replace('657413 b7', '657413 b8') ?? '';
  shown = {
    file: file.replace(header.beacon ?? '', beacon),
    answer: { ...answer, beacon },
  };
  await page.reload();
  await expect(page.getByRole('heading', { name: '추첨 기록이 맞지 않습니다' })).toBeVisible();
  await expect(page.locator('.checks li.bad')).toContainText('drand 657,413회차');
});

test.describe('without a draw', () => {
  test.use({ allowed: /404/ });

  test('the page says that there is none', async ({ page }) => {
    const organiser = await Organiser.logIn();
    const eventId = await organiser.createSale();
    await organiser.dispose();
    await page.goto(`/draws/${eventId}`);
    await expect(page.getByRole('heading', { name: '추첨이 없는 공연입니다' })).toBeVisible();
    await look(page, 'ko');
  });
});
