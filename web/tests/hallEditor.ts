/** The layout editor, as tests use it. */
import { expect, type Page } from '@playwright/test';

export const board = (page: Page) =>
  page.getByRole('application', { name: /편집판|drawing board/ });
export const sections = (page: Page) => page.locator('.sections .name');
export const saveButton = (page: Page) => page.getByRole('button', { name: /^(저장|Save)$/ });

/** Where a point of an empty hall is on the screen: all of it is shown around (0, 1100). */
export async function pointOf(page: Page): Promise<(x: number, y: number) => [number, number]> {
  await board(page).evaluate((canvas) => canvas.scrollIntoView({ block: 'end' }));
  const box = (await board(page).boundingBox())!;
  const scale = Math.min((box.width - 32) / 3000, (box.height - 32) / 2800);
  return (x, y) => [box.x + box.width / 2 + x * scale, box.y + box.height / 2 + (y - 1100) * scale];
}

export async function drag(
  page: Page,
  from: [number, number],
  to: [number, number],
): Promise<void> {
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.mouse.move((from[0] + to[0]) / 2, (from[1] + to[1]) / 2, { steps: 4 });
  await page.mouse.move(...to, { steps: 4 });
  await page.mouse.up();
}

export async function saveHall(page: Page): Promise<string> {
  await saveButton(page).click();
  await expect(page.getByText(/모두 저장됨|Everything is saved/)).toBeVisible();
  await page.waitForURL(/\/admin\/halls\/[0-9a-f-]{36}$/);
  return page.url().split('/').at(-1)!;
}
