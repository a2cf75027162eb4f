import { sveltekit } from '@sveltejs/kit/vite';
import type { Plugin, Rollup } from 'vite';
import { defineConfig } from 'vitest/config';

type GetModuleInfo = Rollup.GetModuleInfo;
type ChunkMeta = Rollup.ManualChunkMeta;

const program = process.env.URR_URL ?? 'http://127.0.0.1:3001';

/** A module that so many pages need is loaded with the first one. */
const PAGES_SHARING_MIN = 8;
const PAGE = /\/src\/routes\/(.*\/)?\+(page|layout|error)\.svelte$/;
/** What every visit needs: the frame of all pages, and the page where most visits begin. */
const FIRST_PAGES = ['/src/routes/+layout.svelte', '/src/routes/+page.svelte'];
const ADMIN_PAGES = '/src/routes/admin/';
const users = new Map<string, ReadonlySet<string>>();

/** The pages that import a module, directly or through others, but not while they run. */
function pagesUsing(id: string, getModuleInfo: GetModuleInfo): ReadonlySet<string> {
  const known = users.get(id);
  if (known) return known;
  const [pages, seen, open] = [new Set<string>(), new Set([id]), [id]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (PAGE.test(next)) {
      pages.add(next);
      continue;
    }
    for (const importer of getModuleInfo(next)?.importers ?? []) {
      if (!seen.has(importer)) open.push(importer);
      seen.add(importer);
    }
  }
  users.set(id, pages);
  return pages;
}

/** The pages that show texts of an area. All of them import the index of the texts. */
function pagesShowing(area: string, { getModuleIds, getModuleInfo }: ChunkMeta): Set<string> {
  const use = new RegExp(`\\bm\\.${area}(_|\\b)`);
  const ids = [...getModuleIds()].filter((id) => id.includes('/src/'));
  const users = ids.filter((id) => use.test(getModuleInfo(id)?.code ?? ''));
  return new Set(
    users.flatMap((id) => (PAGE.test(id) ? [id] : [...pagesUsing(id, getModuleInfo)])),
  );
}

/** Whether fans load it with their first page. What only organisers share is none of it. */
function isCommon(pages: ReadonlySet<string>): boolean {
  const isFirst = FIRST_PAGES.some((page) => [...pages].some((user) => user.endsWith(page)));
  const forFans = [...pages].filter((page) => !page.includes(ADMIN_PAGES)).length;
  return isFirst || forFans >= PAGES_SHARING_MIN;
}

/**
 * Over HTTP/1.1 a page of many small chunks waits for several round trips, so what most pages
 * share is in two chunks: the framework, and what is common. Other texts are divided by their area;
 * without a chunk of their own they would follow the index of all texts into the common one.
 */
function chunkOf(id: string, meta: ChunkMeta) {
  if (/node_modules\/(svelte|@sveltejs|esm-env|clsx|devalue)\//.test(id)) return 'framework';
  if (id.endsWith('/src/lib/text/locale.ts')) return 'common';
  const area = id.match(/\/src\/lib\/text\/messages\/(\w+)\.ts$/)?.[1];
  if (area) return isCommon(pagesShowing(area, meta)) ? 'common' : `texts-${area}`;
  if (!id.includes('/src/lib/') || id.includes('/src/lib/text/')) return undefined;
  return isCommon(pagesUsing(id, meta.getModuleInfo)) ? 'common' : undefined;
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
    // The list of what each page loads is part of every first visit. Scripts are not in it: a shell
    // preloads its own, and a page that is opened later names them itself.
    modulePreload: {
      resolveDependencies: (_file, files) => files.filter((file) => !file.endsWith('.js')),
    },
    rollupOptions: { output: { manualChunks: chunkOf } },
  },
  server: {
    host: '127.0.0.1',
    // Pages of the program that are not part of this build.
    proxy: { '/api': program, '/queue': program, '/sandbox': program },
  },
  test: { include: ['src/**/*.test.ts'] },
});
