/**
 * Every page of a fan, enlarged: 1280 pixels at 400 % and at 200 %, and text of twice the size.
 * Nothing scrolls sideways, and no word of the header or of a button is cut off or broken.
 */
import type { Page } from '@playwright/test';
import { expect, logIn, test } from './fan';
import { type FanPage, PAGES, pagesWithContent } from './fanPages';
import { verifiedFan } from './verifiedFan';

const SIZES = [
  { name: '320 pixels wide', width: 320, height: 640, text: 16 },
  { name: '640 pixels wide', width: 640, height: 512, text: 16 },
  { name: 'large text', width: 1280, height: 900, text: 32 },
  // A line has room for five large letters: only the header is looked at for words.
  { name: 'large text on a phone', width: 390, height: 844, text: 32, words: 'header.header, nav' },
] as const;

const LABELS =
  'header, nav, dialog, main :is(button, a, h1, h2, h3, th, dt, label, legend, summary)';

/** What is wrong with the layout of a page, in words. */
function findProblems(page: Page, labels = LABELS): Promise<string[]> {
  return page.evaluate(async (labels) => {
    await document.fonts.ready;
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const problems: string[] = [];
    const { scrollWidth, clientWidth } = document.documentElement;

    const nameOf = (element: Element) =>
      `${element.tagName.toLowerCase()}.${[...element.classList].join('.')}`;
    const scrolls = (element: Element | null): boolean =>
      element !== null &&
      (/auto|scroll/.test(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
    if (scrollWidth > clientWidth) {
      const wide = [...document.body.querySelectorAll('*')].filter(
        (one) => one.getBoundingClientRect().right > clientWidth + 1 && !scrolls(one),
      );
      const hidden = [...document.body.querySelectorAll('.visually-hidden')].filter(
        (one) => one.getBoundingClientRect().right > clientWidth,
      );
      const names = [...wide, ...hidden].slice(-3).map(nameOf).join(', ');
      problems.push(`is ${scrollWidth} wide: ${names}`);
    }
    for (const dialog of document.querySelectorAll('dialog[open]'))
      if (dialog.scrollWidth > dialog.clientWidth)
        problems.push(`has a dialog of ${dialog.scrollWidth} in ${dialog.clientWidth}`);

    // Words: letters and digits in one piece. What people wrote may be too long for any line.
    const isSeen = (element: Element) =>
      element.checkVisibility({ visibilityProperty: true }) &&
      !element.closest('.visually-hidden, [translate="no"], .name') &&
      getComputedStyle(element).textOverflow !== 'ellipsis';
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const parent = walker.currentNode.parentElement;
      if (!parent?.closest(labels) || !isSeen(parent)) continue;
      for (const word of (walker.currentNode.nodeValue ?? '').matchAll(/[\p{L}\p{N}]+/gu)) {
        const range = document.createRange();
        range.setStart(walker.currentNode, word.index);
        range.setEnd(walker.currentNode, word.index + word[0].length);
        const boxes = [...range.getClientRects()].filter((box) => box.width > 0);
        const lines = new Set(boxes.map((box) => Math.round(box.top)));
        if (lines.size > 1) problems.push(`breaks “${word[0]}” in ${nameOf(parent)}`);
        const isOutside = boxes.some((box) => box.left < -1 || box.right > clientWidth + 1);
        if (isOutside && !scrolls(parent))
          problems.push(`cuts off “${word[0]}” in ${nameOf(parent)}`);
      }
    }
    return [...new Set(problems)];
  }, labels);
}

async function showAs(page: Page, { width, height, text }: (typeof SIZES)[number]): Promise<void> {
  await page.setViewportSize({ width, height });
  await page.evaluate((pixels) => {
    document.documentElement.style.fontSize = `${pixels}px`;
  }, text);
}

/** Opens every page once and looks at it in all sizes. */
async function walk(page: Page, pages: readonly FanPage[]): Promise<string[]> {
  const found: string[] = [];
  for (const { name, path, ready, press } of pages) {
    await page.goto(await path(page));
    const content = page.locator(`main :is(${ready})`).filter({ visible: true });
    await expect(content.first(), name).toBeVisible();
    if (press) await page.locator(press).click();
    await expect(page.locator('main [aria-busy="true"]'), name).toHaveCount(0);
    for (const size of SIZES) {
      await showAs(page, size);
      const problems = await findProblems(page, 'words' in size ? size.words : LABELS);
      found.push(...problems.map((one) => `${name}, ${size.name}: ${one}`));
    }
  }
  return found;
}

for (const locale of ['ko-KR', 'en-GB'])
  test.describe(locale, () => {
    test.use({ locale });

    test('pages for everybody', async ({ page }) => {
      test.slow();
      expect(
        await walk(
          page,
          PAGES.filter(({ fan }) => !fan),
        ),
      ).toEqual([]);
    });

    test('pages behind a login', async ({ page }) => {
      test.slow();
      await logIn(page, await verifiedFan('enlarged'));
      const empty = PAGES.filter(({ fan }) => fan);
      const found = await walk(page, empty);
      found.push(...(await walk(page, await pagesWithContent(page))));
      expect(found).toEqual([]);
    });
  });

test('a page that is too wide is noticed, and a broken word', async ({ page }) => {
  await page.goto('/help');
  const [size] = SIZES;
  await showAs(page, size);
  expect(await findProblems(page)).toEqual([]);
  await page.evaluate(() => {
    document.querySelector<HTMLElement>('main h1')!.style.width = '1em';
    document.querySelector<HTMLElement>('main h2')!.style.width = '400px';
  });
  const problems = (await findProblems(page)).join('\n');
  expect(problems).toMatch(/is 4\d\d wide/);
  expect(problems).toMatch(/breaks “/);
});
