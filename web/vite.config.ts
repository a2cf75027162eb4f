import { sveltekit } from '@sveltejs/kit/vite';
import { defineConfig } from 'vitest/config';

const program = process.env.URR_URL ?? 'http://127.0.0.1:3001';

export default defineConfig({
  plugins: [sveltekit()],
  build: {
    target: 'es2022',
    // A data address would need another Content-Security-Policy.
    assetsInlineLimit: 0,
    // Over HTTP/1.1 a page with many small chunks waits for several round trips.
    rollupOptions: { output: { experimentalMinChunkSize: 12_000 } },
  },
  server: {
    host: '127.0.0.1',
    // Pages of the program that are not part of this build.
    proxy: { '/api': program, '/queue': program, '/sandbox': program },
  },
  test: { include: ['src/**/*.test.ts'] },
});
