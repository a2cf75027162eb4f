/**
 * `npm run slow`: every page of a fan over slow 3G with a processor that is six times slower, each
 * from an empty cache. Prints when something is seen, when the page can be used, how much it jumps
 * and what jumps.
 */
import type { Browser, Page } from '@playwright/test';
import { type Account, expect, logIn, test } from '../tests/fan';
import { type FanPage, PAGES, pagesWithContent } from '../tests/fanPages';
import { verifiedFan } from '../tests/verifiedFan';

const SLOWED = 6;
/** As browsers define slow 3G: 400 kbit/s, and 400 ms more for each round trip. */
const SLOW_3G = {
  offline: false,
  latency: 400,
  downloadThroughput: 50_000,
  uploadThroughput: 50_000,
};
const SHIFT_MAX = 0.05;
const USABLE_MS_MAX = 60_000;

interface Walked {
  readonly seenMs: number;
  readonly usableMs: number;
  readonly shift: number;
  readonly jumped: string[];
}

interface Watched {
  shift: number;
  jumped: string[];
}

/** Notes every jump of the layout with what moved. */
function watchJumps(): void {
  const watched: Watched = { shift: 0, jumped: [] };
  Object.assign(window, { urrSlow: watched });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const jump = entry as unknown as { value: number; sources: { node: Element | null }[] };
      watched.shift += jump.value;
      if (jump.value < 0.005) continue;
      const names = jump.sources.map(({ node }) => {
        const element = node instanceof Element ? node : null;
        return `${element?.tagName.toLowerCase() ?? '?'}.${element?.className ?? ''}`;
      });
      watched.jumped.push(`${jump.value.toFixed(3)} ${names.slice(0, 4).join(', ')}`);
    }
  }).observe({ type: 'layout-shift', buffered: true });
}

/** Milliseconds of the page's own clock until the selector is there and nothing is busy. */
function untilReady(page: Page, selector: string): Promise<number> {
  return page.evaluate(
    (wanted) =>
      new Promise<number>((resolve) => {
        const look = () => {
          const main = document.querySelector('main');
          const found =
            main && [...main.querySelectorAll(wanted)].some((one) => one.checkVisibility());
          if (found && !main.querySelector('[aria-busy="true"], .skeleton'))
            resolve(performance.now());
          else setTimeout(look, 50);
        };
        look();
      }),
    selector,
  );
}

async function walk(browser: Browser, one: FanPage, account?: Account): Promise<Walked> {
  const context = await browser.newContext({
    baseURL: process.env.URR_URL ?? '',
    locale: 'ko-KR',
    viewport: { width: 390, height: 844 },
    serviceWorkers: 'block',
  });
  const page = await context.newPage();
  page.setDefaultTimeout(USABLE_MS_MAX);
  if (account) await logIn(page, account);
  const path = await one.path(page);
  await page.addInitScript(watchJumps);
  const client = await context.newCDPSession(page);
  await client.send('Network.enable');
  await client.send('Network.emulateNetworkConditions', SLOW_3G);
  await client.send('Emulation.setCPUThrottlingRate', { rate: SLOWED });
  await page.goto(path, { waitUntil: 'commit', timeout: USABLE_MS_MAX });
  const usableMs = await untilReady(page, one.ready);
  // Pictures and further lists may still come.
  await page.waitForTimeout(1_500);
  const { seenMs, shift, jumped } = await page.evaluate(() => {
    const [seen] = performance.getEntriesByName('first-contentful-paint');
    const { shift, jumped } = (window as unknown as { urrSlow: Watched }).urrSlow;
    return { seenMs: seen?.startTime ?? 0, shift, jumped };
  });
  await context.close();
  return { seenMs, usableMs, shift, jumped };
}

test('slow', async ({ browser, page }) => {
  test.setTimeout(3_600_000);
  // One fan has nothing yet, the other something of everything.
  const [newcomer, regular] = [await verifiedFan('newcomer'), await verifiedFan('regular')];
  await logIn(page, regular);
  const own = (await pagesWithContent(page)).filter(({ press }) => !press);
  const pages = [
    ...PAGES.map((one) => ({ one, account: one.fan && newcomer })),
    ...own.map((one) => ({ one, account: regular })),
  ];
  console.log(
    `${'page'.padEnd(34)}${'seen'.padStart(8)}${'usable'.padStart(8)}${'shift'.padStart(8)}`,
  );
  const wanted = process.env.URR_SLOW_PAGES;
  const jumping: string[] = [];
  for (const { one, account } of pages) {
    if (wanted && !new RegExp(wanted).test(one.name)) continue;
    const { seenMs, usableMs, shift, jumped } = await walk(browser, one, account);
    console.log(
      one.name.padEnd(34) +
        seenMs.toFixed(0).padStart(8) +
        usableMs.toFixed(0).padStart(8) +
        shift.toFixed(3).padStart(8) +
        jumped.map((jump) => `\n    ${jump}`).join(''),
    );
    if (shift > SHIFT_MAX) jumping.push(one.name);
  }
  expect(jumping, 'pages that jump').toEqual([]);
});
