/**
 * Writes `build/routes.json` for the program that serves the pages: which shell belongs to which
 * address in which language, and what that shell loads first.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
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
writeFileSync(
  `${build}routes.json.part`,
  `${JSON.stringify({ version: 1, languageCookie: 'urr-language', locales, notFound, routes }, null, 2)}\n`,
);
renameSync(`${build}routes.json.part`, `${build}routes.json`);
