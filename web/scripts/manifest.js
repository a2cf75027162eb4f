/**
 * Writes `build/routes.json` for the program that serves the pages: which shell belongs to which
 * address in which language, and what that shell loads first. Tells the service worker which files
 * only organisers load.
 */
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { locales, pageRoutes, shellPath } from './routes.js';

const build = fileURLToPath(new URL('../build/', import.meta.url));

/** @param {string} path */
function shellFile(path) {
  const name = path.slice(1);
  const candidates = name === '' ? ['index.html'] : [`${name}.html`, `${name}/index.html`];
  const file = candidates.find((candidate) => existsSync(build + candidate));
  if (!file) throw new Error(`the build has no shell for ${path}`);
  return file;
}

/** @param {string} file @param {string} rel */
function links(file, rel) {
  const html = readFileSync(build + file, 'utf8');
  const found = [...html.matchAll(/<link\b[^>]*>/g)].map(([tag]) => tag);
  return found
    .filter((tag) => tag.includes(`rel="${rel}"`))
    .map((tag) => tag.match(/href="([^"]+)"/)?.[1] ?? '');
}

/** The 404 page is rendered in the browser; only its language differs. */
function writeNotFound() {
  const html = readFileSync(`${build}404.html`, 'utf8').replace(
    '<html lang="ko">',
    '<html lang="en">',
  );
  const file = `${build}en/404.html`;
  writeFileSync(file, html);
  writeFileSync(`${file}.br`, brotliCompressSync(html));
  writeFileSync(`${file}.gz`, gzipSync(html, { level: 9 }));
  return { ko: '404.html', en: 'en/404.html' };
}

/** The waiting page is no page of this build, but its font comes from here. */
function copyQueueFont() {
  const font = fileURLToPath(new URL('../src/lib/styles/fonts/queue.woff2', import.meta.url));
  const hash = createHash('sha256').update(readFileSync(font)).digest('hex').slice(0, 8);
  const file = `_app/immutable/assets/queue.${hash}.woff2`;
  copyFileSync(font, build + file);
  return file;
}

const notFound = writeNotFound();
const routes = pageRoutes().map((route) => {
  const shells = Object.fromEntries(
    locales.map((locale) => [locale, shellFile(shellPath(route, locale))]),
  );
  const file = shells[locales[0] ?? ''] ?? '';
  return {
    pattern: route.replace(/\[([^\]]+)\]/g, '{$1}'),
    shells,
    styles: links(file, 'stylesheet'),
    modules: links(file, 'modulepreload'),
  };
});
const manifest = {
  version: 1,
  languageCookie: 'urr-language',
  locales,
  notFound,
  routes,
  queueFont: copyQueueFont(),
};
writeFileSync(`${build}routes.json.part`, `${JSON.stringify(manifest, null, 2)}\n`);
renameSync(`${build}routes.json.part`, `${build}routes.json`);
writeOrganisersFiles();

/**
 * @typedef {{ file: string, imports?: string[], dynamicImports?: string[], css?: string[],
 *   assets?: string[] }} Chunk
 */

/** The files that a page which loads these files may load, now or later. */
function reachable(/** @type {Record<string, Chunk>} */ chunks, /** @type {string[]} */ files) {
  const byFile = new Map(Object.values(chunks).map((chunk) => [`/${chunk.file}`, chunk]));
  const [seen, open] = [new Set(files), [...files]];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    const chunk = byFile.get(file);
    // The start of the app knows every page of everybody.
    const later = file.includes('/entry/') ? [] : (chunk?.dynamicImports ?? []);
    const loaded = [...(chunk?.imports ?? []), ...later].map((key) => chunks[key]?.file ?? '');
    for (const next of [...loaded, ...(chunk?.css ?? []), ...(chunk?.assets ?? [])]) {
      if (!seen.has(`/${next}`)) open.push(`/${next}`);
      seen.add(`/${next}`);
    }
  }
  return seen;
}

/** Fans do not keep what only organisers load. */
function writeOrganisersFiles() {
  const output = new URL('../.svelte-kit/output/client/.vite/manifest.json', import.meta.url);
  /** @type {Record<string, Chunk>} */
  const chunks = JSON.parse(readFileSync(output, 'utf8'));
  const isOrganisers = (/** @type {string} */ pattern) => /^\/admin(\/|$)/.test(pattern);
  const firstFiles = (/** @type {boolean} */ ofOrganisers) =>
    routes
      .filter(({ pattern }) => isOrganisers(pattern) === ofOrganisers)
      .flatMap(({ styles, modules }) => [...styles, ...modules]);
  const fans = reachable(chunks, firstFiles(false));
  const organisers = [...reachable(chunks, firstFiles(true))].filter((file) => !fans.has(file));
  if (organisers.length === 0) throw new Error('no file is only for organisers');
  const file = `${build}service-worker.js`;
  const script = readFileSync(file, 'utf8');
  const placeholder = '__FILES_OF_ORGANISERS__';
  if (!script.includes(placeholder)) throw new Error('the service worker has changed');
  const changed = script.replace(placeholder, organisers.sort().join(' '));
  writeFileSync(file, changed);
  writeFileSync(`${file}.br`, brotliCompressSync(changed));
  writeFileSync(`${file}.gz`, gzipSync(changed, { level: 9 }));
}
