import { sveltekit } from '@sveltejs/kit/vite';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

const program = process.env.URR_URL ?? 'http://127.0.0.1:3001';

/**
 * Over HTTP/1.1 a page of many small chunks waits for several round trips, so what most pages
 * share is in two chunks: the framework, and our own components with what they need.
 */
function chunkOf(id: string): string | undefined {
  if (/node_modules\/(svelte|@sveltejs|esm-env|clsx|devalue)\//.test(id)) return 'framework';
  if (/src\/lib\/(api|time|components|session\/(session|return)|format|parameters|links)/.test(id))
    return 'common';
  return undefined;
}

/** SvelteKit hides its announcer by a style attribute, which our policy forbids. */
const announcerWithoutStyle: Plugin = {
  name: 'announcer-without-style',
  enforce: 'pre',
  transform(code, id) {
    if (!id.endsWith('/generated/root.svelte')) return;
    const changed = code.replace(
      /(id="svelte-announcer"[^>]*?) style="[^"]*"/,
      '$1 class="visually-hidden"',
    );
    if (changed === code) this.error('the announcer has changed: see vite.config.ts');
    return { code: changed, map: null };
  },
};

export default defineConfig({
  plugins: [announcerWithoutStyle, sveltekit()],
  build: {
    target: 'es2022',
    // A data address would need another Content-Security-Policy.
    assetsInlineLimit: 0,
    rollupOptions: { output: { manualChunks: chunkOf } },
  },
  server: {
    host: '127.0.0.1',
    // Pages of the program that are not part of this build.
    proxy: { '/api': program, '/queue': program, '/sandbox': program },
  },
  test: { include: ['src/**/*.test.ts'] },
});
