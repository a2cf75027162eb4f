/** The page that `urr rush run` writes: one file, read on a phone or a desk, by day or by night. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, expectAccessible, expectNoSidewaysScroll, test } from './fan';
import { runProgram } from './program';

const FANS = '60';
/** Fans are quick, so that the test is. */
const QUICK = ['--choosing', '0.2', '--paying', '0.2', '--programs', '0.2', '--max-minutes', '2'];

let folder: string;
let report: string;

test.describe.configure({ mode: 'serial', timeout: 180_000 });

test.beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'urr-rush-report-'));
  const accounts = ['--accounts', join(folder, 'fans.jsonl')];
  const program = await runProgram();
  try {
    const answer = await fetch(`${program.url}/api/events?status=on_sale&limit=50`);
    const { events } = (await answer.json()) as { events: { id: string; title: string }[] };
    const event = events.find(({ title }) => title.includes('Opera Night'))?.id ?? '';
    await program.run('queue', 'set', event, '--threshold', '10');
    await program.run('rush', 'prepare', '--fans', FANS, ...accounts);
    const name = join(folder, 'report');
    const rush = ['--event', event, '--fans', FANS, ...QUICK, ...accounts, '--report', name];
    // Nobody lists that many seats: the report shows an expectation that is not met.
    const ended = program.run('rush', 'run', ...rush, '--expect', 'seats-sold>=100000');
    await expect(ended).rejects.toThrow('an expectation was not met');
    report = pathToFileURL(`${name}.html`).href;
  } finally {
    await program.stop();
  }
});

test.afterAll(() => rmSync(folder, { recursive: true, force: true }));

for (const colorScheme of ['light', 'dark'] as const)
  for (const width of [360, 1280]) {
    test(`${width} px wide, ${colorScheme}`, async ({ page }, testInfo) => {
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme });
      await page.goto(report);
      await expect(page.getByRole('heading', { level: 1 })).toContainText(`${FANS} fans`);
      await expect(page.getByRole('row', { name: /seats-sold/ })).toContainText('not met');
      for (const name of ['arrivals, per second', 'inside, threshold, fans by second']) {
        const plot = page.getByRole('img', { name });
        await expect(plot).toBeVisible();
        const lines = plot.locator('polyline');
        for (const line of await lines.all())
          expect((await line.getAttribute('points'))?.split(' ').length).toBeGreaterThan(1);
      }
      expect(await page.getByRole('img').count()).toBeGreaterThan(6);
      await expectNoSidewaysScroll(page);
      await expectAccessible(page);
      await testInfo.attach('page', { body: await page.screenshot({ fullPage: true }) });
      const path = process.env.URR_SCREENSHOTS;
      if (path)
        await page.screenshot({ fullPage: true, path: join(path, `${width}-${colorScheme}.png`) });
    });
  }
