/** The live board of a sale, statistics, and what operators look after. */
import type { Page } from '@playwright/test';
import {
  enter,
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  logIn,
  otherFan,
  test,
} from './fan';
import { Organiser, unique } from './organiser';

const admin = () => JSON.parse(process.env.URR_TEST_ADMIN ?? 'null');

/** Charts and streams go on for ever, so pages are ready when they show what is asked for. */
async function openBoard(page: Page, eventId: string): Promise<void> {
  await logIn(page, admin());
  await page.goto(`/admin/events/${eventId}/live`);
  await expect(page.getByText('실시간', { exact: true })).toBeVisible({ timeout: 20_000 });
}

const figure = (page: Page, name: string) =>
  page.locator('dl div', { has: page.getByText(name, { exact: true }) }).locator('.value');

async function sale(options: Parameters<Organiser['createSale']>[0]): Promise<string> {
  const organiser = await Organiser.logIn();
  const eventId = await organiser.createSale(options);
  await organiser.dispose();
  return eventId;
}

for (const [name, viewport] of [
  ['a phone', { width: 360, height: 740 }],
  ['a desktop', { width: 1280, height: 900 }],
] as const)
  test.describe(`on ${name}`, () => {
    test.use({ viewport });

    test('a board shows a sale second by second, and its controls work', async ({ page }) => {
      test.setTimeout(120_000);
      const title = unique('실시간 공연');
      const eventId = await sale({ title, grid: { rows: 4, seatsPerRow: 10 }, threshold: 1 });
      await openBoard(page, eventId);
      await expect(page.getByRole('main')).toContainText(title);
      await expect(figure(page, '입장 중')).toHaveText('0');
      const first = await otherFan('first');
      await enter(first, eventId);
      const second = await otherFan('second');
      await second.post(`/api/queue/check/${eventId}`);
      await expect(figure(page, '입장 중')).toHaveText('1');
      await expect(figure(page, '대기')).toHaveText('1');
      await expect(page.locator('.plot canvas').first()).toBeVisible();
      await expectAccessible(page);
      await expectNoSidewaysScroll(page);

      await page.getByRole('button', { name: '입장 일시 중지' }).click();
      const dialog = page.getByRole('dialog');
      await expect(dialog).toContainText('1명');
      await dialog.getByRole('button', { name: '입장 일시 중지' }).press('Enter');
      await expect(page.getByText('일시 중지', { exact: true })).toBeVisible();
      await expect(page.getByText(`${title}: 1명이 기다리는데`)).toBeVisible({ timeout: 20_000 });

      await page.getByRole('button', { name: '안내 문구' }).click();
      await dialog.getByLabel('대기 화면에 보여 줄 문구').fill('곧 다시 시작합니다');
      await dialog.getByRole('button', { name: '표시', exact: true }).click();
      await expect(page.getByText('곧 다시 시작합니다')).toBeVisible();

      await page.getByRole('button', { name: '속도와 인원' }).click();
      await dialog.getByLabel('동시에 입장할 수 있는 인원').fill('5');
      await dialog.getByRole('button', { name: '적용' }).click();
      await expect(page.getByText('최대 5명')).toBeVisible();

      await page.getByRole('button', { name: '입장 다시 시작' }).click();
      await dialog.getByRole('button', { name: '입장 다시 시작' }).click();
      await expect(figure(page, '입장 중')).toHaveText('2', { timeout: 20_000 });
      await expect(figure(page, '대기')).toHaveText('0');

      await page.getByText('표로 보기').first().click();
      await expect(page.getByRole('table', { name: '대기실' }).getByRole('row')).not.toHaveCount(1);
      await page.getByLabel('하루').check();
      await expect(page.getByRole('heading', { name: '판매', exact: true })).toBeVisible();
      await Promise.all([first.dispose(), second.dispose()]);
    });

    test('the other pages show what they are for', async ({ page }) => {
      await logIn(page, admin());
      for (const [path, heading, ready] of [
        ['/admin', '지금 확인할 일', 'h2'],
        ['/admin/statistics', '공연 비교', 'h2'],
        ['/admin/dead-letters', '처리하지 못한 메시지', '.state'],
        ['/admin/settings', '적용 중인 설정', 'tbody code'],
      ] as const) {
        await page.goto(path);
        await expect(page.getByRole('heading', { name: heading }).first()).toBeVisible();
        await expect(page.locator(ready).first()).toBeVisible();
        await expectAccessible(page);
        await expectNoSidewaysScroll(page);
      }
      await page.goto('/admin/statistics');
      const files = page.getByRole('button', { name: 'CSV 내려받기' });
      await expect(files).toHaveCount(4);
      const names = new Set<string>();
      for (const file of await files.all()) {
        const download = page.waitForEvent('download');
        await file.click();
        names.add((await download).suggestedFilename());
      }
      expect(names.size, [...names].join()).toBe(4);
      await page.goto('/admin/settings');
      await page.getByLabel('설정 찾기').fill('jwt_secret');
      await expect(page.locator('tbody code').first()).toHaveText('auth.jwt_secret');
      await expect(page.getByText(/[0-9a-f]{32}/)).toHaveCount(0);
    });
  });
