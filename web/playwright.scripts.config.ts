import { defineConfig } from '@playwright/test';
import base from './playwright.config';

/** Scripts that use a browser and a program but test nothing: `npm run screens`, `npm run bench`. */
export default defineConfig(base, {
  testDir: 'scripts',
  testMatch: '*.script.ts',
  workers: 1,
  timeout: 600_000,
  retries: 0,
  reporter: [['line']],
});
