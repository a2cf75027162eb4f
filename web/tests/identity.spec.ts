/** Events that are sold only to persons whose identity was checked. */
import type { Page } from '@playwright/test';
import { dialogAtRest, expect, expectAccessible, logIn, pay, registerFan, test } from './fan';
import { Organiser, unique } from './organiser';

test.use({ viewport: { width: 360, height: 740 } });

const sale = test.extend<object, { eventId: string }>({
  eventId: [
    // eslint-disable-next-line no-empty-pattern -- Playwright reads what a fixture needs from it.
    async ({}, use) => {
      const organiser = await Organiser.logIn();
      await use(await organiser.createSale({ event: { requiresIdentity: true } }));
      await organiser.dispose();
    },
    { scope: 'worker' },
  ],
});

async function checkIdentity(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: '본인 확인 시작' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('이름').fill(name);
  await dialog.getByLabel('생년월일').fill('1999-01-31');
  await dialogAtRest(page);
  await expectAccessible(page);
  await dialog.getByRole('button', { name: '확인', exact: true }).click();
}

sale('an event says so before the line, and the check leads back', async ({ page, eventId }) => {
  await logIn(page, await registerFan('person'));
  await page.goto(`/events/${eventId}`);
  await expect(page.getByText('본인 확인을 마친 분만 예매할 수 있습니다.')).toBeVisible();
  await expect(page.getByRole('link', { name: '예매하기', exact: true })).toHaveCount(0);
  await expectAccessible(page);
  await page.getByRole('link', { name: '본인 확인하고 예매하기' }).click();
  await expectAccessible(page);
  await checkIdentity(page, unique('김'));
  await page.waitForURL(`**/events/${eventId}`);
  await expect(page.getByText('본인 확인을 마쳤습니다.')).toBeVisible();
  await page.getByRole('link', { name: '예매하기', exact: true }).click();

  // Nobody waits: the line leads on by itself.
  await page.waitForURL(`**/events/${eventId}/book`);
  await page.getByRole('button', { name: '하나 늘리기' }).first().click();
  await page.getByRole('button', { name: '1매 예매하기' }).click();
  await page.waitForURL(/\/checkout\/reservation\//);
  await pay(page);
  await page.getByRole('link', { name: '티켓 보기' }).click();
  // A ticket that names a person stays with that person.
  await page.getByRole('button', { name: '양도하기' }).click();
  await expect(page.getByRole('dialog')).toContainText('양도할 수 없습니다');
  await expect(page.getByRole('button', { name: '마켓에 올리기' })).toHaveCount(0);
  await page.goto('/my/account');
  await expect(page.getByText('본인 확인을 마쳤습니다.')).toBeVisible();
});

sale.describe('whoever was not checked', () => {
  sale.use({ allowed: /403|409|422/ });

  sale('is led to the check from the booking, and comes back to it', async ({ page, eventId }) => {
    await logIn(page, await registerFan('unchecked'));
    await page.goto(`/events/${eventId}/book`);
    await page.getByRole('button', { name: '하나 늘리기' }).first().click();
    await page.getByRole('button', { name: '1매 예매하기' }).click();
    await page.getByRole('alert').getByRole('link', { name: '본인 확인하기' }).click();
    await checkIdentity(page, unique('이'));
    await page.waitForURL(`**/events/${eventId}/book`);
  });

  sale('learns that a check has failed, or that the person has an account', async ({ page }) => {
    const name = unique('박');
    await logIn(page, await registerFan('first'));
    await page.goto('/my/identity');
    await checkIdentity(page, name);
    await expect(page.getByRole('heading', { name: '본인 확인을 마친 계정입니다' })).toBeVisible();
    await expectAccessible(page);

    await page.evaluate(() => localStorage.clear());
    await page.context().clearCookies();
    const other = await page.context().newPage();
    await logIn(other, await registerFan('second'));
    await other.goto('/my/identity');
    await checkIdentity(other, 'FAILED');
    await expect(other.getByRole('alert')).toBeVisible();
    await other.getByRole('button', { name: '취소' }).click();
    await checkIdentity(other, name);
    await expect(other.getByRole('alert')).toContainText('다른 계정');
  });
});

test('the account page leads to the check and says that it is done', async ({ page }) => {
  await logIn(page, await registerFan('account'));
  await page.goto('/my/account');
  await page.getByRole('link', { name: '본인 확인하기' }).click();
  await checkIdentity(page, unique('최'));
  await page.waitForURL('**/my/account');
  await expect(page.getByText('본인 확인을 마쳤습니다.').first()).toBeVisible();
});
