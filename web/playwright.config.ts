import { defineConfig } from '@playwright/test';

// A cluster on this machine has an authority of its own; Node knows it by NODE_EXTRA_CA_CERTS.
const ownAuthority = process.env.URR_URL?.startsWith('https:') ?? false;

/**
 * Pages in the system's Chromium, against the real program with data of its own. `URR_PROGRAM` names
 * the program, `URR_URL` one that runs already.
 */
export default defineConfig({
  testDir: 'tests',
  globalSetup: './tests/setup.ts',
  workers: 2,
  fullyParallel: true,
  forbidOnly: true,
  // A test that passes at the second try is listed as flaky.
  retries: process.env.CI ? 1 : 0,
  timeout: 45_000,
  expect: { timeout: 10_000 },
  reporter: [['list']],
  use: {
    ignoreHTTPSErrors: ownAuthority,
    locale: 'ko-KR',
    timezoneId: 'Asia/Seoul',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        '--no-first-run',
        // The script of a service worker is fetched by the browser and not by a page.
        ...(ownAuthority ? ['--ignore-certificate-errors'] : []),
      ],
    },
  },
});
