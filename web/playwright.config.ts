import { defineConfig } from '@playwright/test';

/** The server serves the pages, too. */
const server = process.env.BERTH_URL ?? 'http://127.0.0.1:8470';
/** The binary under test. The demo has people in every role, two months of bookings, and goes on booking. */
const berth = process.env.BERTH_BINARY ?? '../target/release/berth';

export default defineConfig({
  testDir: 'e2e',
  testMatch: '**/*.spec.ts',
  globalSetup: './e2e/setup.ts',
  workers: 1,
  timeout: 90_000,
  expect: { timeout: 15_000 },
  reporter: [['list']],
  use: {
    baseURL: server,
    launchOptions: { executablePath: process.env.CHROMIUM_BIN ?? '/usr/bin/chromium', args: ['--no-sandbox'] },
    locale: 'en-GB',
    timezoneId: 'Europe/Rome',
    screenshot: 'only-on-failure',
  },
  webServer: {
    command: `node e2e/serve.mjs ${berth} ${new URL(server).host}`,
    url: `${server}/readyz`,
    reuseExistingServer: true,
    timeout: 240_000,
    gracefulShutdown: { signal: 'SIGTERM', timeout: 20_000 },
  },
});
