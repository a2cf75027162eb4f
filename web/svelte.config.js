import adapter from '@sveltejs/adapter-static';
import { vitePreprocess } from '@sveltejs/vite-plugin-svelte';
import { locales, pageRoutes, shellPath } from './scripts/routes.js';

/**
 * Every page is prerendered once per language, without data. A page with a parameter is rendered
 * for the placeholder `_`; the browser reads the real value from the address.
 *
 * @type {import('@sveltejs/kit').Config}
 */
const config = {
  preprocess: vitePreprocess(),
  kit: {
    adapter: adapter({ fallback: '404.html', precompress: true }),
    // Shells are served at other addresses than the one they were rendered for.
    paths: { relative: false },
    // A style element would need `unsafe-inline`.
    inlineStyleThreshold: 0,
    prerender: {
      crawl: false,
      entries: locales.flatMap((locale) =>
        pageRoutes().map((route) => /** @type {`/${string}`} */ (shellPath(route, locale))),
      ),
    },
    version: { pollInterval: 0 },
  },
};

export default config;
