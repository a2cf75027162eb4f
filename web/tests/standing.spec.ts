/** Tickets of a standing event: what they cost in a pre-sale, and choosing again. */
import { expect, expectAccessible, join, logIn, registerFan, test } from './fan';
import { Organiser } from './organiser';

test.use({ viewport: { width: 360, height: 740 } });

const HOUR_MS = 3_600_000;

async function sale(options: Parameters<Organiser['createSale']>[0]): Promise<string> {
  const organiser = await Organiser.logIn();
  const eventId = await organiser.createSale(options);
  await organiser.dispose();
  return eventId;
}

test('in a pre-sale the bar says what the checkout asks for', async ({ page }) => {
  const organiser = await Organiser.logIn();
  const artist = await organiser.createArtist();
  const eventId = await organiser.createSale({
    artistId: artist.id,
    event: {
      hasPresale: true,
      // The first tier could buy a day before those who have just joined.
      saleStartsAt: new Date(Date.now() - 25 * HOUR_MS).toISOString(),
    },
  });
  await organiser.dispose();
  await logIn(page, await registerFan('presale'));
  await join(page.request, artist.id);

  await page.goto(`/events/${eventId}/book`);
  await page.getByRole('button', { name: '늘리기' }).click();
  const bar = page.getByRole('region', { name: '선택한 내용' });
  await expect(bar).toContainText('58,000원');
  await expect(bar).toContainText('선예매 수수료 3,000원 포함');
  await bar.getByRole('button', { name: '1매 예매하기' }).click();
  await expect(page.getByRole('button', { name: '58,000원 결제하기' })).toBeVisible();
});

test.describe('tickets that wait to be paid', () => {
  test.use({ allowed: /409/ });

  test('can be given up, and others chosen', async ({ page }) => {
    const eventId = await sale({ tickets: 4 });
    await logIn(page, await registerFan('again'));
    await page.goto(`/events/${eventId}/book`);
    await page.getByRole('button', { name: '늘리기' }).click();
    await page.getByRole('button', { name: '1매 예매하기' }).click();
    await expect(page).toHaveURL(/\/checkout\/reservation\//u);

    await page.goto(`/events/${eventId}/book`);
    await page.getByRole('button', { name: '늘리기' }).click();
    await page.getByRole('button', { name: '2매 예매하기' }).click();
    const notice = page.getByRole('alert').filter({ hasText: '결제를 기다리는 티켓' });
    await expect(notice.getByRole('link', { name: '그 티켓 결제하기' })).toBeVisible();
    await expectAccessible(page);
    await notice.getByRole('button', { name: '그 티켓 포기하기' }).click();
    await expect(notice).toHaveCount(0);
    await expect(page.getByText('4매 남음')).toBeVisible();
    await page.getByRole('button', { name: '2매 예매하기' }).click();
    await expect(page.getByRole('button', { name: '110,000원 결제하기' })).toBeVisible();
  });
});
