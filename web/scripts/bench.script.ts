/**
 * `scripts/bench-web.sh`: how soon a page can be used, how smoothly the map of a stadium
 * moves, and how much memory it needs. Slowed numbers stand beside those of the same run without
 * slowing. The machine has no graphics card, so frames are drawn by its processor.
 */
import type { CDPSession, Page } from '@playwright/test';
import { eventWith, expect, holdTickets, logIn, registerFan, test } from '../tests/fan';

const SLOWED = 6;
const RUNS = 5;
const FRAMES = 120;
const CHANGES_PER_SECOND = 200;
/** So often the program tells what has changed. */
const CHANGES_EVERY_MS = 300;

interface Usable {
  readonly name: string;
  readonly path: string;
  readonly ready: string;
}

test.use({ viewport: { width: 360, height: 740 }, serviceWorkers: 'block' });

const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
const line = (...columns: (string | number)[]) =>
  console.log(
    columns
      .map((column, index) =>
        index === 0 ? String(column).padEnd(44) : String(column).padStart(12),
      )
      .join(''),
  );

/** Milliseconds from asking for a page until `ready` is on it and a script can answer a click. */
async function untilUsable(page: Page, { path, ready }: Usable): Promise<number> {
  await page.goto('about:blank');
  await page.goto(path, { waitUntil: 'commit' });
  return page.evaluate(
    (selector) =>
      new Promise<number>((resolve) => {
        const look = () => {
          const found = document.querySelector(selector);
          if (found && !found.closest('[aria-busy="true"]')) resolve(performance.now());
          else requestAnimationFrame(look);
        };
        look();
      }),
    ready,
  );
}

async function usableTimes(page: Page, client: CDPSession, pages: Usable[]): Promise<void> {
  line('time until a page can be used (ms)', 'plain', `${SLOWED}x slowed`, 'ratio');
  for (const one of pages) {
    const times: Record<number, number> = {};
    for (const rate of [1, SLOWED]) {
      await client.send('Emulation.setCPUThrottlingRate', { rate });
      const runs: number[] = [];
      for (let run = 0; run < RUNS; run++) runs.push(await untilUsable(page, one));
      times[rate] = median(runs);
    }
    await client.send('Emulation.setCPUThrottlingRate', { rate: 1 });
    const [plain, slowed] = [times[1]!, times[SLOWED]!];
    line(`  ${one.name}`, plain.toFixed(0), slowed.toFixed(0), (slowed / plain).toFixed(1));
  }
}

/** Milliseconds between frames while the map is moved; the slowest are what a fan notices. */
async function framesWhileMoving(page: Page): Promise<{ median: number; slow: number }> {
  const box = (await page.getByRole('application').boundingBox())!;
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const frames = page.evaluate(
    (count) =>
      new Promise<number[]>((resolve) => {
        const times: number[] = [];
        let last = performance.now();
        const step = (now: number) => {
          times.push(now - last);
          last = now;
          if (times.length <= count) requestAnimationFrame(step);
          else resolve(times.slice(1));
        };
        requestAnimationFrame(step);
      }),
    FRAMES,
  );
  let isDone = false;
  const ended = frames.then(() => (isDone = true));
  await page.mouse.move(x, y);
  await page.mouse.down();
  for (let step = 0; !isDone; step++)
    await page.mouse.move(x + 90 * Math.sin(step / 9), y + 90 * Math.cos(step / 7));
  await page.mouse.up();
  await ended;
  const sorted = (await frames).sort((a, b) => a - b);
  return { median: sorted[FRAMES / 2]!, slow: sorted[Math.floor(FRAMES * 0.95)]! };
}

/** The stream of seats says so many changes per second, once `urrBench.isChanging` is set. */
async function fakeChanges(page: Page, seats: number): Promise<void> {
  await page.addInitScript(
    ([perSecond, everyMs, count]) => {
      const bench = ((window as unknown as { urrBench: object }).urrBench = {
        isChanging: false,
        sent: 0,
      });
      const original = window.fetch;
      window.fetch = (input, init) => {
        const url = input instanceof Request ? input.url : String(input);
        if (!/\/api\/seats\/events\/[^/]+\/stream/.test(url)) return original(input, init);
        let version = 1e9;
        const encoder = new TextEncoder();
        const body = new ReadableStream({
          start(controller) {
            setInterval(() => {
              if (!bench.isChanging) return;
              const changes = Array.from({ length: (perSecond! * everyMs!) / 1_000 }, () => [
                Math.floor(Math.random() * count!),
                Math.floor(Math.random() * 3),
              ]);
              bench.sent += changes.length;
              controller.enqueue(
                encoder.encode(`data: ${JSON.stringify({ version: version++, changes })}\n\n`),
              );
            }, everyMs);
          },
        });
        const headers = { 'content-type': 'text/event-stream' };
        return Promise.resolve(new Response(body, { headers }));
      };
    },
    [CHANGES_PER_SECOND, CHANGES_EVERY_MS, seats],
  );
}

async function largestHall(page: Page): Promise<{ id: string; seats: number }> {
  const { events } = await (await page.request.get('/api/events?status=on_sale&limit=100')).json();
  let largest = { id: '', seats: 0 };
  for (const { id, kind } of events) {
    if (kind !== 'seated') continue;
    const { event } = await (await page.request.get(`/api/events/${id}`)).json();
    if (event.capacity > largest.seats) largest = { id, seats: event.capacity };
  }
  expect(largest.seats).toBeGreaterThan(50_000);
  return largest;
}

test('bench', async ({ page, context }) => {
  await logIn(page, await registerFan('bench'));
  const client = await context.newCDPSession(page);
  const hall = await largestHall(page);
  const standing = await eventWith(page, 'on_sale', 'standing');
  const reservation = await holdTickets(page.request, standing);
  console.log('');
  await usableTimes(page, client, [
    { name: 'home', path: '/', ready: 'main article h3' },
    { name: 'event', path: `/events/${hall.id}`, ready: `main a[href="/queue/${hall.id}"]` },
    {
      name: `seats (${hall.seats})`,
      path: `/events/${hall.id}/seats`,
      ready: '[role="application"]',
    },
    {
      name: 'checkout',
      path: `/checkout/reservation/${reservation}`,
      ready: 'button[type="submit"]',
    },
  ]);

  await fakeChanges(page, hall.seats);
  await page.goto(`/events/${hall.id}/seats`);
  await expect(page.getByRole('application')).toBeVisible();
  for (const [what, zoom] of [
    ['whole hall', 0],
    ['seats', 6],
  ] as const) {
    for (let step = 0; step < zoom; step++)
      await page.getByRole('button', { name: '확대' }).click();
    line(`frames of the map, ${what} (ms)`, 'median', '95 %');
    for (const isChanging of [false, true])
      for (const rate of [1, SLOWED]) {
        await client.send('Emulation.setCPUThrottlingRate', { rate });
        await page.evaluate((value) => {
          (window as unknown as { urrBench: { isChanging: boolean } }).urrBench.isChanging = value;
        }, isChanging);
        const frames = await framesWhileMoving(page);
        await client.send('Emulation.setCPUThrottlingRate', { rate: 1 });
        const load = isChanging ? `, ${CHANGES_PER_SECOND} changes/s` : '';
        line(
          `  panning${load}${rate > 1 ? `, ${rate}x slowed` : ''}`,
          frames.median.toFixed(1),
          frames.slow.toFixed(1),
        );
      }
  }
  const sent = await page.evaluate(
    () => (window as unknown as { urrBench: { sent: number } }).urrBench.sent,
  );
  expect(sent, 'seats changed while the map moved').toBeGreaterThan(CHANGES_PER_SECOND);

  line('memory of scripts and their arrays (MB)', 'used');
  for (const [name, path] of [
    ['home', '/'],
    ['seats', `/events/${hall.id}/seats`],
  ] as const) {
    await page.goto(path);
    await page.waitForLoadState('load');
    await expect(page.locator('[role="application"], main article h3').first()).toBeVisible();
    await client.send('HeapProfiler.collectGarbage');
    // Arrays of numbers, such as the seats, are beside the heap.
    const { usedSize, backingStorageSize } = await client.send('Runtime.getHeapUsage');
    line(`  ${name}`, ((usedSize + backingStorageSize) / 1e6).toFixed(1));
  }
});
