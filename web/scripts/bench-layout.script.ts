/** How soon the layout editor opens a hall of 50,000 seats, and how smoothly it moves. */
import type { Page } from '@playwright/test';
import { expect, logIn, test } from '../tests/fan';
import { Organiser } from '../tests/organiser';

const FRAMES = 120;

test.use({ viewport: { width: 1280, height: 900 }, serviceWorkers: 'block' });

function stadium(): object {
  const rows = Array.from({ length: 20 }, (_, i) => ({ label: String(i + 1), seats: 25 }));
  const sections = Array.from({ length: 100 }, (_, i) => ({
    name: `S${i + 1}`,
    grade: ['VIP', 'R', 'S', 'A'][Math.floor(i / 25)],
    x: ((i % 10) - 4.5) * 1500,
    y: 800 + Math.floor(i / 10) * 2200,
    rows,
  }));
  return { sections };
}

/**
 * The times between frames while the pointer does something on the canvas, in milliseconds. The
 * picture must have changed on the way: nothing is fast that does nothing.
 */
async function frames(page: Page, kind: 'pan' | 'zoom' | 'move'): Promise<number[]> {
  const { times, hasMoved } = await page.evaluate(
    async ([count, what]) => {
      const canvas = document.querySelector('canvas')!;
      const box = canvas.getBoundingClientRect();
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
      const send = (type: string, dx: number, button = 0) =>
        canvas.dispatchEvent(
          new PointerEvent(type, {
            pointerId: 1,
            button: what === 'pan' && type === 'pointerdown' ? 1 : button,
            clientX: x + dx,
            clientY: y + dx / 3,
            bubbles: true,
          }),
        );
      canvas.setPointerCapture = () => {};
      const times: number[] = [];
      const first = canvas.toDataURL();
      let hasMoved = false;
      let before = await new Promise<number>(requestAnimationFrame);
      if (what !== 'zoom') send('pointerdown', 0);
      for (let i = 0; i < count; i++) {
        const swing = Math.sin(i / 12) * 260;
        if (what === 'zoom')
          canvas.dispatchEvent(
            new WheelEvent('wheel', {
              deltaY: Math.sin(i / 20) * 40,
              clientX: x,
              clientY: y,
              cancelable: true,
            }),
          );
        else send('pointermove', swing);
        const now = await new Promise<number>(requestAnimationFrame);
        times.push(now - before);
        before = now;
        // Reading the picture takes time, which is not that of a frame.
        if (i !== 18) continue;
        hasMoved = canvas.toDataURL() !== first;
        before = await new Promise<number>(requestAnimationFrame);
      }
      if (what !== 'zoom') send('pointerup', 0);
      return { times, hasMoved };
    },
    [FRAMES, kind] as const,
  );
  expect(hasMoved, kind).toBe(true);
  return times;
}

function summary(name: string, times: number[]): void {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))]!.toFixed(1);
  console.log(`${name.padEnd(34)} median ${at(0.5)} ms, 95 % ${at(0.95)} ms, worst ${at(1)} ms`);
}

test('the layout editor with 50,000 seats', async ({ page }) => {
  const organiser = await Organiser.logIn();
  const venue = await organiser.createVenue();
  const hall = await organiser.createHall(venue.id, { layout: stadium() });
  expect(hall.totalSeats).toBe(50_000);
  await organiser.dispose();
  await logIn(page, JSON.parse(process.env.URR_TEST_ADMIN ?? 'null'));
  const startedAt = Date.now();
  await page.goto(`/admin/halls/${hall.id}`);
  await expect(page.locator('.sections .name')).toHaveCount(100);
  await expect(page.getByRole('application')).toBeVisible();
  console.log(`opened in ${Date.now() - startedAt} ms`);
  await page.waitForTimeout(500);
  summary('pan, the whole hall', await frames(page, 'pan'));
  summary('zoom', await frames(page, 'zoom'));
  await page.getByRole('application').focus();
  for (let i = 0; i < 8; i++) await page.keyboard.press('+');
  await page.waitForTimeout(300);
  summary('pan, seats and numbers', await frames(page, 'pan'));
  await page.keyboard.press('0');
  await page.keyboard.press('Control+a');
  await page.waitForTimeout(300);
  summary('move everything', await frames(page, 'move'));
});
