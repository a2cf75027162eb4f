/** The page routes, found in `src/routes`, and where their shells are. */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The first one is the base: its shells have no prefix. */
export const locales = ['ko', 'en'];

const root = fileURLToPath(new URL('../src/routes', import.meta.url));

/** Route ids of all pages, such as `/events/[id]`, except those below `/dev`. */
export function pageRoutes() {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((file) => `/${file.replaceAll('\\', '/')}`)
    .filter((file) => file.endsWith('/+page.svelte') && !file.startsWith('/dev/'))
    .map((file) => file.slice(0, -'/+page.svelte'.length) || '/')
    .sort();
}

/**
 * The address for which the shell of a route is rendered.
 *
 * @param {string} route
 * @param {string} locale
 */
export function shellPath(route, locale) {
  const path = route.replace(/\[[^\]]+\]/g, '_');
  if (locale === locales[0]) return path;
  return path === '/' ? `/${locale}` : `/${locale}${path}`;
}
