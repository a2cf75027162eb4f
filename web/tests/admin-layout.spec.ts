import { readFile } from 'node:fs/promises';
import type { Download, Page } from '@playwright/test';
import { registerWorker } from './admin';
import {
  type Account,
  dialogAtRest,
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  expectOneLanguage,
  holdSeats,
  logIn,
  otherFan,
  test,
} from './fan';
import { board, drag, pointOf, saveButton, saveHall, sections } from './hallEditor';
import { Organiser, unique } from './organiser';

const DESKTOP = { width: 1280, height: 900 };
const TABLET = { width: 820, height: 1180 };
const PHONE = { width: 390, height: 780 };

test.use({ viewport: DESKTOP });

let organiser: Organiser;
let worker: Account;
test.beforeAll(async () => {
  organiser = await Organiser.logIn();
  worker = await registerWorker('admin', 'drawer');
});
test.afterAll(() => organiser.dispose());
test.beforeEach(async ({ page }) => {
  await logIn(page, worker);
  // A page with unsaved work asks before it is closed.
  page.on('dialog', (dialog) => void dialog.accept());
});

async function openNew(page: Page): Promise<void> {
  const venue = await organiser.createVenue();
  await page.goto(`/admin/halls/new?venue=${venue.id}`);
  await expect(board(page)).toBeVisible();
}

async function textOf(download: Download): Promise<string> {
  return readFile(await download.path(), 'utf8');
}

async function exported(page: Page, kind: 'JSON' | 'CSV'): Promise<string> {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: new RegExp(`${kind} 내보내기|Export ${kind}`) }).click(),
  ]);
  return textOf(download);
}

async function importText(page: Page, name: string, text: string): Promise<void> {
  await page.getByRole('button', { name: /^(파일 불러오기|Import)$/ }).click();
  await dialogAtRest(page);
  await page
    .locator('dialog[open] input[type=file]')
    .setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
}

test('a hall is drawn by mouse, saved, opened again, sold, and booked', async ({ page }) => {
  const name = unique('그린 홀');
  await page.goto('/admin/halls');
  await page.getByRole('button', { name: '공연장 추가' }).click();
  await dialogAtRest(page);
  const venue = unique('가나 극장');
  await page.getByLabel('공연장 이름').fill(venue);
  await page.getByLabel('주소').fill('서울특별시 종로구 1');
  await page.locator('dialog[open]').getByRole('button', { name: '저장' }).click();
  await expect(page.locator('dialog[open]')).toHaveCount(0);
  const { venues } = await (await page.request.get('/api/venues?limit=100')).json();
  const { id } = venues.find((one: { name: string }) => one.name === venue);
  await page.goto(`/admin/halls/new?venue=${id}`);
  await page.getByLabel('홀 이름').fill(name);

  await page.getByRole('button', { name: '사각형 구역' }).click();
  const at = await pointOf(page);
  await drag(page, at(-500, 500), at(500, 1000));
  await expect(sections(page)).toHaveText([/A.*5열 100석/]);
  await page.getByRole('button', { name: '다각형 구역' }).click();
  for (const corner of [at(-900, 1200), at(900, 1200), at(600, 2000), at(-600, 2000)])
    await page.mouse.click(...corner);
  await page.mouse.click(...at(-900, 1200));
  await expect(sections(page)).toHaveCount(2);
  await expect(sections(page).nth(1)).toHaveText(/B.*8열/);

  // The move snaps and can be undone.
  await page.getByLabel('구역 이름').waitFor();
  await drag(page, at(0, 1600), at(104, 1703));
  const across = page.getByLabel('가로 위치');
  await expect(across).not.toHaveValue('0');
  const moved = await across.inputValue();
  await page.getByRole('button', { name: /^실행 취소/ }).click();
  await expect(across).toHaveValue('0');
  await page.getByRole('button', { name: /^다시 실행/ }).click();
  await expect(across).toHaveValue(moved);

  // A row in the middle is painted: the section is cut in three.
  await page.getByRole('button', { name: '열', exact: true }).click();
  await page.getByRole('button', { name: '칠하기', exact: true }).click();
  await page.locator('#layout-brush-grade').fill('VIP');
  await page.mouse.click(...at(0, 725));
  await expect(sections(page)).toHaveCount(4);
  // One wheelchair seat.
  await page.getByRole('button', { name: '좌석', exact: true }).click();
  await page.locator('#layout-brush').selectOption('accessible');
  await page.mouse.click(...at(-475, 545));
  await expectAccessible(page);
  await expectOneLanguage(page, 'ko');
  await expectNoSidewaysScroll(page);

  const hallId = await saveHall(page);
  const stored = await organiser.hall(hallId);
  expect(stored.name).toBe(name);
  expect(stored.grades).toEqual(['R', 'VIP']);
  expect(stored.layoutConfig.sections[0].rows[0].accessible).toEqual([1]);
  await page.reload();
  await expect(sections(page)).toHaveCount(4);
  await page.getByRole('button', { name: '관객 화면 미리보기' }).click();
  await dialogAtRest(page);
  await expect(page.getByRole('application', { name: '좌석 배치도' })).toBeVisible();
  await expectAccessible(page);

  const sale = await organiser.createSale({
    hall: { id: hallId, prices: { R: 66_000, VIP: 99_000 } },
  });
  const fan = await otherFan('drawn');
  const reservation = await holdSeats(fan, sale, [0]);
  const booked = await (await fan.get(`/api/reservations/${reservation}`)).json();
  expect(JSON.stringify(booked)).toContain('A-1-1');
  await fan.dispose();

  // Now the hall is used: its seats are fixed, and the page says so.
  await page.goto(`/admin/halls/${hallId}`);
  await expect(page.getByText('공연 1개가 이 홀을 사용합니다.')).toBeVisible();
  await expect(page.getByRole('button', { name: '사각형 구역' })).toBeDisabled();
  await page.getByLabel('설명').fill('새 설명');
  await saveHall(page);
  expect((await organiser.hall(hallId)).layoutConfig).toEqual(stored.layoutConfig);
  await page.getByRole('link', { name: '사본을 만들어 바꾸기' }).click();
  await expect(page.getByLabel('홀 이름')).toHaveValue(`${name} 사본`);
  await expect(sections(page)).toHaveCount(4);
});

test.describe('in English, on a tablet', () => {
  test.use({ locale: 'en-US', viewport: TABLET });

  test('a hall is drawn by keyboard alone', async ({ page }) => {
    await openNew(page);
    const press = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key);
    };
    await page.getByLabel('Name of the hall').focus();
    await page.keyboard.type('Keyboard hall');
    await board(page).focus();
    await press('a', 'r', 'ArrowRight', 'ArrowRight', 'ArrowDown', 'Control+d', 'm', 'n');
    await expect(sections(page)).toHaveCount(2);
    await press('Control+c', 'Control+v', 'Delete', 'Control+z', 'Control+z');
    await expect(sections(page)).toHaveCount(2);

    // The form has everything else.
    await page.getByRole('button', { name: /^A R/ }).focus();
    await press('Enter');
    const set = async (label: string, value: string) => {
      await page.getByLabel(label, { exact: false }).first().focus();
      await press('Control+a');
      await page.keyboard.type(value);
      await press('Enter');
    };
    await set('Name of the section', 'Stalls');
    await set('Curve radius', '1500');
    await set('Rotation', '-10');
    await set('Seats per row', '14');
    await page.getByLabel('Seat numbers begin').focus();
    await press('ArrowDown');
    await page.getByLabel('Which numbers').focus();
    await press('ArrowDown');
    await page.getByRole('button', { name: 'Apply numbers' }).focus();
    await press('Enter');
    await page.getByLabel('Row labels').focus();
    await press('ArrowDown');
    await page.getByRole('button', { name: 'Apply labels' }).focus();
    await press('Enter');
    await page.getByText('rows in detail').focus();
    await press('Enter');
    await page.getByLabel('Wheelchair seats').last().scrollIntoViewIfNeeded();
    await page.getByRole('group', { name: 'Row A' }).getByLabel('Wheelchair seats').focus();
    await page.keyboard.type('1, 3');
    await press('Enter');
    await expectAccessible(page);
    await expectOneLanguage(page, 'en');
    await expectNoSidewaysScroll(page);
    await press('Control+s');
    await page.waitForURL(/\/admin\/halls\/[0-9a-f-]{36}$/);
    const hall = await organiser.hall(page.url().split('/').at(-1)!);
    const [stalls] = hall.layoutConfig.sections;
    expect(stalls).toMatchObject({ name: 'Stalls', curveRadius: 1500, angleDegrees: -10 });
    expect(stalls.rows[0]).toEqual({
      label: 'A',
      seats: 14,
      firstNumber: 27,
      numberStep: -2,
      accessible: [1, 3],
    });
    expect(stalls.rows).toHaveLength(10);
  });
});

test('export and import give the same layout', async ({ page }) => {
  const venue = await organiser.createVenue();
  const layout = {
    sections: [
      {
        name: '1층 가',
        grade: 'VIP',
        x: -300,
        y: 700,
        angleDegrees: 20,
        curveRadius: 1200,
        seatPitch: 55,
        rowPitch: 95,
        rows: [
          { label: '1', seats: 20, accessible: [1, 2], restrictedView: [20] },
          { label: '2', seats: 21, firstNumber: 41, numberStep: -2, offset: -30 },
        ],
      },
      {
        name: '2층 "나"',
        grade: 'R',
        x: 0,
        y: 2000,
        angleDegrees: 0,
        curveRadius: 0,
        seatPitch: 50,
        rowPitch: 90,
        rows: [{ label: '가', seats: 10 }],
      },
    ],
  };
  const hall = await organiser.createHall(venue.id, { layout });
  expect(hall.layoutConfig).toEqual(layout);
  await page.goto(`/admin/halls/${hall.id}`);
  const files = { JSON: await exported(page, 'JSON'), CSV: await exported(page, 'CSV') };
  for (const [kind, text] of Object.entries(files)) {
    await page.goto(`/admin/halls/new?venue=${venue.id}`);
    await page.getByLabel('홀 이름').fill(`${kind} 홀`);
    await importText(page, `hall.${kind.toLowerCase()}`, text);
    await page.getByRole('button', { name: '배치 바꾸기' }).click();
    const id = await saveHall(page);
    expect((await organiser.hall(id)).layoutConfig, kind).toEqual(layout);
    expect(await exported(page, kind as 'JSON' | 'CSV')).toBe(text);
  }
});

test('what the catalogue refuses is told with its place', async ({ page }) => {
  await openNew(page);
  await importText(page, 'a.csv', 'section,row,number,grade\nA,1,1,R\nA,1,two,R\n');
  await expect(page.getByText('3번째 줄: 숫자가 아닙니다. number: two')).toBeVisible();
  await expect(page.getByRole('button', { name: '배치 바꾸기' })).toBeDisabled();
  await expectAccessible(page);
  await page.locator('dialog[open] input[type=file]').setInputFiles({
    name: 'a.json',
    mimeType: 'application/json',
    buffer: Buffer.from(
      '{"sections":[{"name":"A","grade":"R","rows":[{"label":"1","seats":501}]}]}',
    ),
  });
  await expect(page.getByText('"A" 구역 "1"열의 좌석은 1~500개여야 합니다.')).toBeVisible();
  await page.locator('dialog[open]').getByRole('button', { name: '취소' }).click();

  await page.getByRole('button', { name: '구역 추가', exact: true }).click();
  await page.getByRole('button', { name: '구역 추가', exact: true }).click();
  await page.getByLabel('구역 이름').fill('A');
  await page.getByLabel('구역 이름').press('Enter');
  await page.getByLabel('홀 이름').fill('틀린 홀');
  await expect(page.getByText('이름이 "A"인 구역이 둘입니다.')).toBeVisible();
  await saveButton(page).click();
  await expect(page).toHaveURL(/\/new/);
  await page.getByRole('button', { name: '보기', exact: true }).click();
  await expect(sections(page).nth(1)).toHaveAttribute('aria-pressed', 'true');
  await page.getByLabel('구역 이름').fill('B');
  await page.getByLabel('구역 이름').press('Enter');
  await expect(page.getByText('고칠 곳이')).toHaveCount(0);
  await saveHall(page);
});

test('unsaved work is kept, and leaving asks first', async ({ page }) => {
  await openNew(page);
  const address = page.url();
  await page.getByRole('button', { name: '구역 추가', exact: true }).click();
  await page.getByRole('link', { name: '홀과 좌석 배치' }).first().click();
  await dialogAtRest(page);
  await expect(page.getByText('저장하지 않고 나갈까요?')).toBeVisible();
  await page.getByRole('button', { name: '계속 편집' }).click();
  await expect(sections(page)).toHaveCount(1);
  // The draft is written a moment after the change.
  await expect
    .poll(() =>
      page.evaluate(
        () =>
          new Promise<number>((resolve) => {
            const opening = indexedDB.open('urr-halls', 1);
            opening.onsuccess = () => {
              const database = opening.result;
              const count = database.transaction('drafts').objectStore('drafts').count();
              count.onsuccess = () => {
                database.close();
                resolve(count.result);
              };
            };
          }),
      ),
    )
    .toBe(1);
  await page.goto(address);
  await expect(page.getByText('저장하지 않고 남긴 작업이 있습니다')).toBeVisible();
  await expect(sections(page)).toHaveCount(0);
  await page.getByRole('button', { name: '이어서 하기' }).click();
  await expect(sections(page)).toHaveCount(1);
  await page.getByRole('link', { name: '홀과 좌석 배치' }).first().click();
  await page.getByRole('button', { name: '나가기', exact: true }).click();
  await page.waitForURL(/\/admin\/halls$/);
  await page.goto(address);
  await expect(board(page)).toBeVisible();
  await expect(page.getByText('저장하지 않고 남긴 작업이 있습니다')).toHaveCount(0);
});

test.describe('two editors', () => {
  test.use({ allowed: /409/ });

  test('the second one is refused and told', async ({ page }) => {
    const venue = await organiser.createVenue();
    const grid = { rows: 2, seatsPerRow: 5, gradeMapping: [{ grade: 'R', fromRow: 1, toRow: 2 }] };
    const hall = await organiser.createHall(venue.id, { grid });
    await page.goto(`/admin/halls/${hall.id}`);
    await expect(sections(page)).toHaveCount(1);
    await organiser.changeHall(hall.id, { name: '먼저 바꾼 이름' });
    await page.getByRole('button', { name: '구역 추가', exact: true }).click();
    await saveButton(page).click();
    await expect(page.getByText('그 사이 다른 사람이 이 홀을 바꾸었습니다.')).toBeVisible();
    expect((await organiser.hall(hall.id)).layoutConfig.sections).toHaveLength(1);
    await expectAccessible(page);
    await page.getByRole('button', { name: '새 내용 불러오기' }).click();
    await expect(page.getByLabel('홀 이름')).toHaveValue('먼저 바꾼 이름');
    // The control: whoever has the new state may save.
    await page.getByRole('button', { name: '구역 추가', exact: true }).click();
    await saveHall(page);
    expect((await organiser.hall(hall.id)).layoutConfig.sections).toHaveLength(2);
  });
});

/** The card of a venue, which may be on any page of the list. */
async function findVenue(page: Page, name: string) {
  const { pagination } = await (await page.request.get('/api/venues?limit=20')).json();
  const card = page.locator('article', { hasText: name });
  for (let number = pagination.totalPages; number >= 1; number--) {
    await page.goto(`/admin/halls?page=${number}`);
    await expect(page.locator('article').first()).toBeVisible();
    if (await card.count()) break;
  }
  return card;
}

test.describe('deleting', () => {
  test.use({ allowed: /409/ });

  test('a hall that nothing uses is deleted, one in use is not', async ({ page }) => {
    const venue = await organiser.createVenue();
    const grid = { rows: 1, seatsPerRow: 2, gradeMapping: [{ grade: 'R', fromRow: 1, toRow: 1 }] };
    await organiser.createHall(venue.id, { grid }, '쓰지 않는 홀');
    const used = await organiser.createHall(venue.id, { grid }, '쓰는 홀');
    await organiser.createSale({ hall: { id: used.id, prices: { R: 10_000 } } });
    const card = await findVenue(page, venue.name);
    const confirm = page.locator('dialog[open]').getByRole('button', { name: '삭제', exact: true });
    await card.getByRole('button', { name: /삭제.*쓰지 않는 홀/ }).click();
    await dialogAtRest(page);
    await expectAccessible(page);
    await confirm.click();
    await expect(card.getByText('쓰지 않는 홀', { exact: true })).toHaveCount(0);
    await card.getByRole('button', { name: /삭제.*쓰는 홀/ }).click();
    await confirm.click();
    await expect(page.getByText('공연에 사용된 홀은 변경하거나 삭제할 수 없습니다.')).toBeVisible();
    expect((await organiser.hall(used.id)).name).toBe('쓰는 홀');
  });
});

test.describe('on a phone', () => {
  test.use({ viewport: PHONE });

  test('a hall can be looked at', async ({ page }) => {
    const venue = await organiser.createVenue();
    const grid = { rows: 3, seatsPerRow: 8, gradeMapping: [{ grade: 'R', fromRow: 1, toRow: 3 }] };
    const hall = await organiser.createHall(venue.id, { grid });
    await page.goto('/admin/halls');
    await expect(page.locator('article').first()).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await page.goto(`/admin/halls/${hall.id}`);
    await expect(page.getByText('더 큰 화면이 필요합니다')).toBeVisible();
    await expect(page.getByRole('application', { name: '좌석 배치도' })).toBeVisible();
    await expect(board(page)).toHaveCount(0);
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
  });
});
