/** Paying: every outcome of the sandbox, lost holds and sessions, and the windows of real providers. */
import type { Page } from '@playwright/test';
import {
  changeAnswer,
  chooseCard,
  dialogAtRest,
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  expectOneLanguage,
  expectStill,
  holdSeats,
  holdTickets,
  join,
  logIn,
  logInAt,
  openWindow,
  pay,
  registerFan,
  SAME_ORIGIN,
  scanQr,
  test,
} from './fan';
import { Organiser } from './organiser';
import { runProgram, type RunningProgram } from './program';

const PHONE = { width: 360, height: 740 };
test.use({ viewport: PHONE });

/** The test cards of the sandbox, by what becomes of them. */
const CARDS = {
  pays: ['approve', 'slow', 'stumble', 'charge-timeout', 'charge-500', 'duplicate'],
  declined: ['decline', 'insufficient'],
  open: ['timeout', 'unknown-code'],
  wrong: ['wrong-amount', 'test-channel'],
  refund: ['refund-timeout', 'refund-whole', 'refund-decline'],
} as const;

/** One standing event is enough for all payments of a worker. */
const sale = test.extend<object, { eventId: string }>({
  eventId: [
    // eslint-disable-next-line no-empty-pattern -- Playwright reads what a fixture needs from it.
    async ({}, use) => {
      const organiser = await Organiser.logIn();
      const eventId = await organiser.createSale({ tickets: 1_000 });
      await organiser.dispose();
      await use(eventId);
    },
    { scope: 'worker' },
  ],
});

/** A fan with a held ticket, at the checkout. */
async function atCheckout(page: Page, eventId: string): Promise<string> {
  await logIn(page, await registerFan('payer'));
  const id = await holdTickets(page.request, eventId);
  await page.goto(`/checkout/reservation/${id}`);
  await expect(page.getByText('결제 금액')).toBeVisible();
  await expectStill(page);
  return id;
}

async function reservationOf(page: Page, id: string) {
  return (await (await page.request.get(`/api/reservations/${id}`)).json()).reservation;
}

sale.describe('a test card that pays', () => {
  for (const card of CARDS.pays)
    sale(`W-2 ${card} ends with a ticket, also after a reload`, async ({ page, eventId }) => {
      const id = await atCheckout(page, eventId);
      await pay(page, card);
      await expect(page.getByRole('heading', { name: '예매 완료' })).toBeVisible({
        timeout: 30_000,
      });
      expect((await reservationOf(page, id)).status).toBe('confirmed');
      // Loading the result again is no second payment and no failure.
      await page.reload();
      await expect(page.getByRole('heading', { name: '예매 완료' })).toBeVisible();
      await expectAccessible(page);
    });
});

sale.describe('a test card that is declined', () => {
  sale.use({ allowed: /402/ });
  for (const card of CARDS.declined)
    sale(`${card} leaves the hold, and nothing is charged`, async ({ page, eventId }) => {
      const id = await atCheckout(page, eventId);
      await pay(page, card);
      await expect(page.getByRole('alert')).toContainText('카드가 거절되었습니다');
      await expectAccessible(page);
      expect((await reservationOf(page, id)).status).toBe('pending');
      await page.getByRole('link', { name: '결제 화면으로' }).click();
      await expect(page.getByRole('timer')).toBeVisible();
    });
});

sale.describe('a test card whose outcome is open', () => {
  for (const card of CARDS.open)
    sale(`${card} is checked, and nobody pays twice meanwhile`, async ({ page, eventId }) => {
      const id = await atCheckout(page, eventId);
      await pay(page, card);
      await expect(page.getByRole('heading', { name: '확인하고 있습니다' })).toBeVisible();
      await expectAccessible(page);
      // Another tab, or the same one later, does not offer to pay again.
      await page.goto(`/checkout/reservation/${id}`);
      await expect(page.getByText('다시 결제하지 마세요')).toBeVisible();
      await expect(page.getByRole('button', { name: /결제하기/ })).toHaveCount(0);
    });
});

sale.describe('a test card that is charged wrongly', () => {
  sale.use({ allowed: /409/ });
  for (const card of CARDS.wrong)
    sale(`${card} is given back`, async ({ page, eventId }) => {
      await atCheckout(page, eventId);
      await pay(page, card);
      await expect(page.getByRole('alert')).toContainText('결제 금액을 돌려드립니다', {
        timeout: 30_000,
      });
      await expectAccessible(page);
    });
});

sale.describe('a test card and its refund', () => {
  for (const card of CARDS.refund) {
    const said = card === 'refund-decline' ? /환불하고 있습니다/ : /환불했습니다/;
    sale(
      `${card}: the cancellation says its amount before and after`,
      async ({ page, eventId }) => {
        const id = await atCheckout(page, eventId);
        await pay(page, card);
        await expect(page.getByRole('heading', { name: '예매 완료' })).toBeVisible();
        await page.goto(`/my/reservations/${id}`);
        await page.getByRole('button', { name: '예매 취소' }).click();
        await dialogAtRest(page);
        await expectAccessible(page);
        const confirm = page.getByRole('button', { name: /취소하고 55,000원 돌려받기/ });
        await confirm.click();
        const notice = page.locator('.notice[role="status"]');
        await expect(notice).toContainText('55,000원');
        await expect(async () => {
          await page.reload();
          await expect(notice).toContainText(said, { timeout: 2_000 });
        }).toPass({ timeout: 30_000 });
        await expect(page.getByRole('img', { name: /QR/ })).toHaveCount(0);
      },
    );
  }
});

sale.describe('a session that ends at the checkout', () => {
  sale.use({ allowed: /401/ });

  sale(
    'is renewed within the page, and the payment goes on',
    async ({ page, eventId, context }) => {
      const account = await registerFan('forgotten');
      await logIn(page, account);
      const id = await holdTickets(page.request, eventId);
      await page.goto(`/checkout/reservation/${id}`);
      await expect(page.getByRole('timer')).toBeVisible();
      await context.clearCookies();
      await page.getByLabel(/결제에 동의합니다/).check();
      await page.getByRole('button', { name: /결제하기/ }).click();
      const dialog = page.getByRole('dialog');
      await expect(dialog).toContainText('다시 로그인해 주세요');
      await dialog.getByLabel('비밀번호').fill(account.password);
      await dialog.getByRole('button', { name: '로그인' }).click();
      await page.waitForURL(/\/sandbox\/pay/);
      await chooseCard(page);
      await expect(page.getByRole('heading', { name: '예매 완료' })).toBeVisible();
    },
  );
});

sale(
  'a double click makes one order, and a closed tab is found again',
  async ({ page, eventId, context }) => {
    const id = await atCheckout(page, eventId);
    await page.getByLabel(/결제에 동의합니다/).check();
    await page.getByRole('button', { name: /결제하기/ }).dblclick();
    await page.waitForURL(/\/sandbox\/pay/);
    const { payments } = await (await page.request.get('/api/payments')).json();
    expect(payments.filter((one: { status: string }) => one.status === 'pending')).toHaveLength(1);

    await page.close();
    const again = await context.newPage();
    await again.goto('/my/reservations');
    await again.locator('main').getByRole('link', { name: '결제하기' }).click();
    await again.waitForURL(`**/checkout/reservation/${id}`);
    await pay(again);
    await expect(again.getByRole('heading', { name: '예매 완료' })).toBeVisible();
  },
);

sale.describe('the window of the sandbox', () => {
  for (const [locale, title] of [
    ['ko-KR', '시험 결제'],
    ['en-GB', 'Sandbox payment'],
  ] as const)
    sale.describe(locale, () => {
      sale.use({ locale });

      sale('is accessible, and fits on a phone', async ({ page, eventId }) => {
        await logIn(page, await registerFan('looker'));
        const id = await holdTickets(page.request, eventId);
        await page.goto(`/checkout/reservation/${id}`);
        await openWindow(page);
        await expect(page.getByRole('heading', { name: title })).toBeVisible();
        await expectAccessible(page);
        await expectNoSidewaysScroll(page);
        // The names of the cards are codes; everything else is in one language.
        const shown = await page
          .locator('input[name="card"]')
          .evaluateAll((cards) => cards.map((card) => (card as HTMLInputElement).value));
        expect(shown.sort(), 'every card has a test').toEqual(Object.values(CARDS).flat().sort());
        const hasKorean = /[가-힣]/.test(await page.locator('fieldset').innerText());
        expect(hasKorean).toBe(locale === 'ko-KR');
      });
    });
});

sale.describe('the time to pay', () => {
  sale.use({ serviceWorkers: 'block' });

  for (const [seconds, said] of [
    [122, '결제까지 남은 시간 2분 시간을 한 번 연장할 수 있습니다.'],
    [62, '결제까지 남은 시간 1분 시간을 한 번 연장할 수 있습니다.'],
    [22, '결제까지 남은 시간 20초 시간을 한 번 연장할 수 있습니다.'],
  ] as const)
    sale(`is read out at ${seconds - 2} seconds before its end`, async ({ page, eventId }) => {
      await logIn(page, await registerFan('listener'));
      const id = await holdTickets(page.request, eventId);
      const expiresAt = new Date(Date.now() + seconds * 1_000).toISOString();
      await page.route('**/api/reservations/*', (route) =>
        changeAnswer<{ reservation: object }>(route, ({ reservation }) => ({
          reservation: { ...reservation, expiresAt },
        })),
      );
      await page.goto(`/checkout/reservation/${id}`);
      await expect(page.getByRole('status').filter({ hasText: said })).toHaveCount(1);
      await expect(page.getByRole('button', { name: '3분 더' })).toBeVisible();
      await expectAccessible(page);
    });

  sale('has its button in view on a phone, with nothing over it', async ({ page, eventId }) => {
    await atCheckout(page, eventId);
    const button = page.getByRole('button', { name: /결제하기/ });
    await expect(button).toBeInViewport({ ratio: 1 });
    const isOnTop = await button.evaluate((element) => {
      const { left, right, top, bottom } = element.getBoundingClientRect();
      const points = [top + 4, (top + bottom) / 2, bottom - 4];
      return points.every((y) =>
        element.contains(document.elementFromPoint((left + right) / 2, y)),
      );
    });
    expect(isOnTop).toBe(true);
  });
});

sale.describe('a lost answer', () => {
  sale.use({ allowed: /ERR_FAILED/, serviceWorkers: 'block' });

  sale(
    'W-12 the second attempt has the key of the first, so one hold is made',
    async ({ page, eventId }) => {
      await logIn(page, await registerFan('again'));
      const keys: (string | undefined)[] = [];
      await page.route('**/api/reservations', async (route) => {
        if (route.request().method() !== 'POST') return route.continue();
        keys.push(route.request().headers()['idempotency-key']);
        if (keys.length > 1) return route.continue();
        await route.fetch();
        await route.abort();
      });
      await page.goto(`/events/${eventId}/book`);
      await page.getByRole('button', { name: '하나 늘리기' }).first().click();
      const book = page.getByRole('button', { name: '1매 예매하기' });
      await book.click();
      await expect(page.getByRole('alert')).toBeVisible();
      await book.click();
      await page.waitForURL(/\/checkout\/reservation\//);
      expect(keys[0]).toBeTruthy();
      expect(keys[1]).toBe(keys[0]);
      const { reservations } = await (
        await page.request.get('/api/reservations?status=pending&limit=5')
      ).json();
      expect(reservations).toHaveLength(1);
    },
  );
});

test.describe('a hold that ends while its fan pays', () => {
  test.use({ allowed: /409/, serviceWorkers: 'block' });
  let program: RunningProgram;
  let eventId: string;

  test.beforeAll(async () => {
    test.setTimeout(120_000);
    program = await runProgram({
      URR_DEMO_SEED: 'false',
      URR_SEATS_HOLD_TTL_SECONDS: '6',
      URR_SEATS_LOCK_TTL_SECONDS: '8',
    });
    const organiser = await Organiser.logIn(program);
    eventId = await organiser.createSale({ grid: { rows: 1, seatsPerRow: 4 } });
    await organiser.dispose();
  });
  test.afterAll(() => program?.stop());

  /** Each test has a seat of its own: the list leaves out those that others hold. */
  async function chooseSeat(page: Page, number: number): Promise<void> {
    await logInAt(page, program.url, await registerFan('late', program.url));
    await page.goto(`${program.url}/events/${eventId}/seats`);
    await page.getByRole('button', { name: '목록', exact: true }).click();
    await page.locator('[data-section="0"]').click();
    await page.locator('.seat', { hasText: `1열 ${number}번` }).click();
    await page.getByRole('button', { name: '1석 예매하기' }).click();
    await page.waitForURL(/\/checkout\/reservation\//);
  }

  async function expectWayBack(page: Page, seat: RegExp): Promise<void> {
    await expect(page.getByRole('heading', { name: '결제 시간이 지났습니다' })).toBeVisible();
    await expectAccessible(page);
    await page.getByRole('link', { name: '다시 예매하기' }).click();
    await page.waitForURL(/\/seats$/);
    await expect(page.locator('.chosen li')).toHaveText(seat);
    await page.getByRole('button', { name: '1석 예매하기' }).click();
    await page.waitForURL(/\/checkout\/reservation\//);
  }

  test('at the checkout: the seat is offered again', async ({ page }) => {
    await chooseSeat(page, 1);
    await expectWayBack(page, /1열 1번/);
  });

  test('at the checkout: also while the map still shows the seat as held', async ({ page }) => {
    await chooseSeat(page, 4);
    // The program frees seats a moment after their hold has ended.
    await page.route(/\/api\/seats\/events\/[^/]+$/, (route) =>
      changeAnswer<{ statuses?: string }>(route, (map) => {
        const bytes = Buffer.from(map.statuses ?? '', 'base64');
        bytes[0] = (bytes[0] ?? 0) | (1 << 6);
        return { ...map, statuses: bytes.toString('base64') };
      }),
    );
    await expectWayBack(page, /1열 4번/);
  });

  test('is extended once, and can be paid after its old end', async ({ page }) => {
    await chooseSeat(page, 2);
    const id = page.url().split('/').at(-1);
    const held = async () =>
      (await (await page.request.get(`${program.url}/api/reservations/${id}`)).json()).reservation;
    const oldEnd = Date.parse((await held()).expiresAt);
    const extend = page.getByRole('button', { name: '3분 더' });
    await extend.click();
    await expect(page.getByText('결제 시간을 연장했습니다')).toBeVisible();
    await expect(extend).toHaveCount(0);
    await expect(page.getByRole('timer')).toHaveText(/0[23]:\d\d/);
    expect(Date.parse((await held()).expiresAt)).toBe(oldEnd + 180_000);
    await expect.poll(() => Date.now(), { timeout: 15_000 }).toBeGreaterThan(oldEnd + 1_500);
    expect((await held()).status).toBe('pending');
    await pay(page);
    await expect(page.getByRole('heading', { name: '예매 완료' })).toBeVisible();
  });

  test('in the payment window: nothing is charged, and the seat is offered again', async ({
    page,
  }) => {
    await chooseSeat(page, 3);
    const id = page.url().split('/').at(-1);
    await openWindow(page);
    await expect
      .poll(
        async () => {
          const response = await page.request.get(`${program.url}/api/reservations/${id}`);
          return (await response.json()).reservation.status;
        },
        { timeout: 20_000 },
      )
      .toBe('expired');
    await chooseCard(page);
    await expect(page.getByRole('alert')).toBeVisible();
    await page.getByRole('link', { name: '결제 화면으로' }).click();
    await expectWayBack(page, /1열 3번/);
  });
});

test.describe('the window of a real provider', () => {
  // The fan's key is refused by the test: nobody outside is asked.
  test.use({ allowed: /402/, serviceWorkers: 'block' });

  const TOSS = `window.TossPayments = (clientKey) => ({
    payment: ({ customerKey }) => ({
      async requestPayment(request) {
        window.name = JSON.stringify({ clientKey, customerKey, ...request });
        location.href = request.successUrl + '?' + new URLSearchParams({
          paymentType: 'NORMAL', orderId: request.orderId, paymentKey: 'toss-key',
          amount: request.amount.value });
      },
    }),
  });
  window.TossPayments.ANONYMOUS = 'ANONYMOUS';`;

  const PORTONE = `window.PortOne = {
    async requestPayment(request) {
      window.name = JSON.stringify(request);
      const url = new URL(request.redirectUrl);
      url.searchParams.set('paymentId', request.paymentId);
      url.searchParams.set('transactionType', 'PAYMENT');
      url.searchParams.set('txId', 'tx-1');
      url.searchParams.set('paymentToken', 'portone-token');
      location.href = url.href;
    },
  };`;

  const PROVIDERS = [
    {
      name: 'toss',
      settings: {
        URR_PAYMENTS_PROVIDER: 'toss',
        URR_PAYMENTS_TOSS_CLIENT_KEY: 'test_ck_fan',
        URR_PAYMENTS_TOSS_SECRET_KEY: 'test_sk_not_used',
        URR_PAYMENTS_DANGEROUS_TEST_PAYMENTS: 'true',
      },
      script: 'https://js.tosspayments.com/v2/standard',
      fake: TOSS,
      sent: {
        clientKey: 'test_ck_fan',
        customerKey: 'ANONYMOUS',
        method: 'CARD',
        amount: { currency: 'KRW', value: 12_000 },
        windowTarget: 'self',
      },
      key: 'toss-key',
    },
    {
      name: 'portone',
      settings: {
        URR_PAYMENTS_PROVIDER: 'portone',
        URR_PAYMENTS_PORTONE_STORE_ID: 'store-1',
        URR_PAYMENTS_PORTONE_CHANNEL_KEY: 'channel-1',
        URR_PAYMENTS_PORTONE_API_SECRET: 'not-used',
        URR_PAYMENTS_PORTONE_WEBHOOK_SECRET: `whsec_${btoa('0123456789abcdef0123456789abcdef')}`,
      },
      script: 'https://cdn.portone.io/v2/browser-sdk.js',
      fake: PORTONE,
      sent: {
        storeId: 'store-1',
        channelKey: 'channel-1',
        totalAmount: 12_000,
        currency: 'KRW',
        forceRedirect: true,
      },
      key: 'portone-token',
    },
  ];

  for (const { name, settings, script, fake, sent, key } of PROVIDERS)
    test(`W-1 ${name}: its script may load, gets the order, and its key is confirmed`, async ({
      page,
    }) => {
      test.slow();
      const program = await runProgram({ URR_DEMO_SEED: 'false', ...settings });
      try {
        const organiser = await Organiser.logIn(program);
        const artist = await organiser.createArtist();
        await organiser.dispose();
        await page.route(script, (route) =>
          route.fulfill({ contentType: 'text/javascript', body: fake }),
        );
        const confirmed: unknown[] = [];
        await page.route('**/api/payments/confirm', async (route) => {
          confirmed.push(route.request().postDataJSON());
          await route.fulfill({ status: 402, json: { code: 'PAYMENT_DECLINED', error: '거절' } });
        });
        await logInAt(page, program.url, await registerFan('shopper', program.url));
        const subscribed = await page.request.post(`${program.url}/api/memberships/subscribe`, {
          data: { artistId: artist.id },
          headers: SAME_ORIGIN,
        });
        const { membershipId } = await subscribed.json();
        const shell = await page.goto(`${program.url}/checkout/membership/${membershipId}`);
        expect(shell?.headers()['content-security-policy']).toContain(
          new URL(script).host.split('.').slice(-2).join('.'),
        );
        await page.getByLabel(/결제에 동의합니다/).check();
        await page.getByRole('button', { name: /결제하기/ }).click();
        await expect(page.getByRole('alert')).toContainText('카드가 거절되었습니다');
        const request = JSON.parse(await page.evaluate(() => window.name));
        expect(request).toMatchObject(sent);
        const orderId = request.orderId ?? request.paymentId;
        expect(confirmed).toEqual([{ orderId, paymentKey: key, amount: 12_000 }]);
      } finally {
        await program.stop();
      }
    });

  test('a script that does not load is said, and nothing is lost', async ({ page }) => {
    test.slow();
    const [toss] = PROVIDERS;
    const program = await runProgram({ URR_DEMO_SEED: 'false', ...toss!.settings });
    try {
      const organiser = await Organiser.logIn(program);
      const artist = await organiser.createArtist();
      await organiser.dispose();
      await page.route(toss!.script, (route) => route.fulfill({ status: 402, body: '' }));
      await logInAt(page, program.url, await registerFan('shopper', program.url));
      const subscribed = await page.request.post(`${program.url}/api/memberships/subscribe`, {
        data: { artistId: artist.id },
        headers: SAME_ORIGIN,
      });
      const { membershipId } = await subscribed.json();
      await page.goto(`${program.url}/checkout/membership/${membershipId}`);
      await page.getByLabel(/결제에 동의합니다/).check();
      await page.getByRole('button', { name: /결제하기/ }).click();
      await expect(page.getByRole('alert')).toContainText('결제창을 열지 못했습니다');
      await expect(page.getByRole('button', { name: /결제하기/ })).toBeEnabled();
    } finally {
      await program.stop();
    }
  });
});

test('W-9 a membership is joined on the page of the artist, at the price of the server', async ({
  page,
}) => {
  const organiser = await Organiser.logIn();
  const artist = await organiser.createArtist();
  await organiser.dispose();
  await logIn(page, await registerFan('member'));
  // What an address says about the price is not believed.
  await page.goto(`/artists/${artist.id}?price=1&membershipPrice=1`);
  await page.getByRole('button', { name: '가입하기' }).click();
  await page.waitForURL(/\/checkout\/membership\//);
  await page.goto(`${page.url()}?amount=1`);
  await expect(page.getByRole('button', { name: /12,000원 결제하기/ })).toBeVisible();
  await expectAccessible(page);
  await expectOneLanguage(page, 'ko');
  await pay(page);
  await expect(page.getByRole('heading', { name: '멤버십 가입 완료' })).toBeVisible();
  await expectAccessible(page);
  await page.getByRole('link', { name: '멤버십 보기' }).click();
  await expect(page.getByText('이용 중')).toBeVisible();
  await page.goto('/my/memberships');
  await expect(page.getByRole('link', { name: artist.name })).toBeVisible();
});

test('W-15 a membership that waits to be paid is not shown as expired', async ({ page }) => {
  const organiser = await Organiser.logIn();
  const artist = await organiser.createArtist();
  await organiser.dispose();
  await logIn(page, await registerFan('pending'));
  await page.request.post('/api/memberships/subscribe', {
    data: { artistId: artist.id },
    headers: SAME_ORIGIN,
  });
  await page.goto('/my/memberships');
  await expect(page.getByText('결제 대기')).toBeVisible();
  await expect(page.getByText('만료', { exact: true })).toHaveCount(0);
  await page.goto(`/artists/${artist.id}`);
  await expect(page.getByRole('button', { name: '결제 이어가기' })).toBeVisible();
});

test.describe('a transfer', () => {
  // What the seller has sold is not the seller's any more.
  test.use({ allowed: /404/ });

  test('a ticket goes from one fan to another, and only the new code opens the door', async ({
    page,
    browser,
  }) => {
    test.slow();
    const organiser = await Organiser.logIn();
    const artist = await organiser.createArtist();
    const eventId = await organiser.createSale({
      grid: { rows: 1, seatsPerRow: 4 },
      artistId: artist.id,
    });
    await logIn(page, await registerFan('seller'));
    await join(page.request, artist.id);
    const reservationId = await holdSeats(page.request, eventId, [1]);
    await page.goto(`/checkout/reservation/${reservationId}`);
    await pay(page);
    await page.getByRole('link', { name: '티켓 보기' }).click();
    const oldCode = await scanQr(page);

    await page.getByRole('button', { name: '양도하기' }).click();
    await dialogAtRest(page);
    await expectAccessible(page);
    await page.getByRole('button', { name: '마켓에 올리기' }).click();
    await expect(page.getByText('양도 마켓에 올라가 있습니다')).toBeVisible();

    const context = await browser.newContext({
      viewport: PHONE,
      locale: 'ko-KR',
      baseURL: process.env.URR_URL ?? '',
    });
    const buyer = await context.newPage();
    await logIn(buyer, await registerFan('buyer'));
    await join(buyer.request, artist.id);
    await buyer.goto(`/transfers?artist=${artist.id}`);
    await expect(buyer.getByText('96,800원')).toBeVisible();
    await buyer.getByRole('link', { name: '사기' }).click();
    await expect(buyer.getByText('양도 수수료 10%')).toBeVisible();
    await expectAccessible(buyer);
    await pay(buyer);
    await buyer.getByRole('link', { name: '티켓 보기' }).click();
    const newCode = await scanQr(buyer);
    expect(newCode).not.toBe(oldCode);

    // The page that the seller has left open says what happened, and leads on.
    await page.reload();
    await expect(page.getByRole('heading', { name: '양도한 티켓입니다' })).toBeVisible();
    await expect(page.getByText('88,000원은 돌려드립니다')).toBeVisible();
    await expectAccessible(page);
    await page.getByRole('link', { name: '내 양도 보기' }).click();
    await page.waitForURL(/\/my\/transfers$/);
    await page.goto('/my/transfers');
    await expect(page.getByText('양도 완료')).toBeVisible();
    await expectAccessible(page);
    expect(await organiser.checkIn(eventId, oldCode)).toBe('TICKET_REISSUED');
    expect(await organiser.checkIn(eventId, newCode)).toBe('ok');
    await organiser.dispose();
    await context.close();
  });
});
