/**
 * Cuts the fonts so that a page loads little of them.
 *
 * `core.css`, preloaded: the text face with the characters of our own texts, figures of equal
 * width, and the display face with the characters of titles. `rest.css`, loaded later: the text
 * face in slices by `unicode-range`, for names of events and people. Frequent syllables are cut
 * finely; for rare ones the package's own slices do. `queue.woff2` is all that the waiting page has.
 */
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import subsetFont from 'subset-font';
import { readTexts } from './texts.js';

const { resolve } = createRequire(import.meta.url);
const output = fileURLToPath(new URL('../src/lib/styles/fonts/', import.meta.url));
const textFont = resolve('pretendard/dist/public/variable/PretendardVariable.ttf');
const textSlices = resolve('pretendard/dist/web/variable/pretendardvariable-dynamic-subset.css');
const displayFont = resolve(
  '@fontsource/black-han-sans/files/black-han-sans-korean-400-normal.woff2',
);

const WEIGHTS = { wght: { min: 400, max: 800 } };
const FINE_SLICES = 20;
const FINE_SLICE_GLYPHS = 24;
const ASCII = String.fromCharCode(...Array.from({ length: 95 }, (_, i) => 32 + i));
const SIGNS = '·…‘’“”–—₩×→←↑↓•©';
const FIGURES = '0123456789';
/** What the waiting page sets in the display face: a place in line and the name. */
const QUEUE = `${FIGURES},~우르`;
/** So many of the most frequent syllables are preloaded besides those of our own texts. */
const FREQUENT_IN_CORE = 40;

// Fans do not load the characters of the organisers' pages, which take them from the slices.
const texts = Object.entries(readTexts('ko')).filter(([key]) => !key.startsWith('admin'));
const titles = texts.filter(([key]) => key.endsWith('_title'));

const own = distinct(ASCII + SIGNS + texts.map(([, text]) => text).join(''));
const display = distinct(`${ASCII}우르르${titles.map(([, text]) => text).join('')}`);

const inputs = createHash('sha256')
  .update(readFileSync(fileURLToPath(import.meta.url)))
  .update(own + display)
  .digest('hex');
const stamp = `${output}stamp`;
if (existsSync(stamp) && readFileSync(stamp, 'utf8') === inputs) process.exit(0);

rmSync(output, { recursive: true, force: true });
mkdirSync(output, { recursive: true });

const slices = packageSlices();
// The most frequent ones first, so that the characters of one name are in few slices.
const byFrequency = slices
  .slice(-FINE_SLICES)
  .reverse()
  .flatMap((slice) => [...slice.characters])
  .filter((character) => !own.includes(character));
const core = own + byFrequency.slice(0, FREQUENT_IN_CORE).join('');
const frequent = byFrequency.slice(FREQUENT_IN_CORE);
const text = readFileSync(textFont);
// Cutting many slices from a font that has only the frequent glyphs is faster.
const small = await subsetFont(text, core + frequent.join(''), {
  targetFormat: 'truetype',
  variationAxes: WEIGHTS,
  noLayoutClosure: true,
});

const rest = [];
for (const slice of slices.slice(0, -FINE_SLICES)) {
  const name = `rest-${slice.file.match(/(\d+)\.woff2$/)?.[1]}.woff2`;
  copyFileSync(slice.file, output + name);
  rest.push(face('URR Text', name, slice.range));
}
for (let i = 0; i < frequent.length; i += FINE_SLICE_GLYPHS) {
  const characters = frequent.slice(i, i + FINE_SLICE_GLYPHS).join('');
  rest.push(await cut(small, `slice-${i / FINE_SLICE_GLYPHS}`, characters));
}
writeFileSync(`${output}rest.css`, rest.join(''));

const figures = await subsetFont(text, FIGURES, { targetFormat: 'woff2', variationAxes: WEIGHTS });
writeFileSync(`${output}digits.woff2`, figures);
const coreFaces = [
  await cut(small, 'text', without(core, FIGURES)),
  face('URR Text', 'digits.woff2', unicodeRange(FIGURES)),
];
writeFileSync(
  `${output}display.woff2`,
  await subsetFont(readFileSync(displayFont), display, { targetFormat: 'woff2' }),
);
writeFileSync(
  `${output}queue.woff2`,
  await subsetFont(readFileSync(displayFont), QUEUE, { targetFormat: 'woff2' }),
);
coreFaces.push(face('URR Display', 'display.woff2', unicodeRange(display)));
writeFileSync(`${output}core.css`, coreFaces.join(''));
writeFileSync(stamp, inputs);

/** @param {Buffer} font @param {string} name @param {string} characters */
async function cut(font, name, characters) {
  const options = { targetFormat: /** @type {const} */ ('woff2'), noLayoutClosure: true };
  writeFileSync(`${output}${name}.woff2`, await subsetFont(font, characters, options));
  return face('URR Text', `${name}.woff2`, unicodeRange(characters));
}

/**
 * Faces of one family must state the same weights: the browser joins their ranges only then. The
 * display face has one weight and states all: titles ask for a heavy one, so that a character which
 * it lacks is heavy in the text face, too.
 *
 * @param {string} family @param {string} file @param {string} range
 */
function face(family, file, range) {
  const weight = family === 'URR Text' ? '400 800' : '400 900';
  return `@font-face{font-family:'${family}';src:url('./${file}') format('woff2');font-weight:${weight};font-display:swap;unicode-range:${range}}\n`;
}

/** The slices that the package was cut into, rare characters first. */
function packageSlices() {
  const css = readFileSync(textSlices, 'utf8');
  return [...css.matchAll(/url\(([^)]+)\)[^}]*?unicode-range: ([^;]+);/g)].map(([, url, range]) => {
    const file = fileURLToPath(new URL(url ?? '', `file://${textSlices}`));
    return { file, range: range ?? '', characters: charactersOf(range ?? '') };
  });
}

/** @param {string} range */
function charactersOf(range) {
  let characters = '';
  for (const part of range.split(',')) {
    const [first = '', last = first] = part.trim().replace('U+', '').split('-');
    for (let code = parseInt(first, 16); code <= parseInt(last, 16); code++)
      characters += String.fromCodePoint(code);
  }
  return characters;
}

/** @param {string} characters */
function unicodeRange(characters) {
  const codes = [...characters].map((character) => character.codePointAt(0) ?? 0);
  codes.sort((a, b) => a - b);
  const parts = [];
  for (let i = 0; i < codes.length; i++) {
    const first = i;
    while (codes[i + 1] === (codes[i] ?? 0) + 1) i++;
    const [from, to] = [codes[first]?.toString(16), codes[i]?.toString(16)];
    parts.push(from === to ? `U+${from}` : `U+${from}-${to}`);
  }
  return parts.join(',');
}

/** @param {string} characters */
function distinct(characters) {
  return [...new Set(characters)]
    .filter((character) => character >= ' ')
    .sort()
    .join('');
}

/** @param {string} characters @param {string} excluded */
function without(characters, excluded) {
  return [...characters].filter((character) => !excluded.includes(character)).join('');
}
