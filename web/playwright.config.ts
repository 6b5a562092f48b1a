import { defineConfig } from '@playwright/test';

/** The server serves the pages, too. */
const server = process.env.BERTH_URL ?? 'http://127.0.0.1:8470';
/** The binary under test. The demo has people in every role, two months of bookings, and goes on booking. */
const berth = process.env.BERTH_BINARY ?? '../target/release/berth';

/**
 * On PostgreSQL only the tests run whose pages rest on SQL that is written for each store, or on servers that are woken by the
 * database: searches, sums, pages of long lists, live changes. The others would see the same answers twice.
 */
const STORE_SENSITIVE = [
  'admin', 'audit', 'bands', 'booking', 'desk', 'home', 'live', 'membership', 'notifications', 'queue', 'series', 'usage',
];
const specs = process.env.BERTH_E2E_STORE === 'postgres' ? STORE_SENSITIVE.map((name) => `**/${name}.spec.ts`) : '**/*.spec.ts';

export default defineConfig({
  testDir: 'e2e',
  testMatch: specs,
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
