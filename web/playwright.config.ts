import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from '@playwright/test';

const pages = process.env.BERTH_WEB ?? 'http://127.0.0.1:4173';
const server = process.env.BERTH_URL ?? 'http://127.0.0.1:8470';
/** The binary under test. The demo has people in every role, two months of bookings, and goes on booking. */
const berth = process.env.BERTH_BIN ?? '../target/release/berth';

export default defineConfig({
  testDir: 'e2e',
  testMatch: '**/*.spec.ts',
  globalSetup: './e2e/setup.ts',
  workers: 1,
  timeout: 90_000,
  expect: { timeout: 15_000 },
  reporter: [['list']],
  use: {
    baseURL: pages,
    launchOptions: { executablePath: process.env.CHROMIUM_BIN ?? '/usr/bin/chromium', args: ['--no-sandbox'] },
    locale: 'en-GB',
    timezoneId: 'Europe/Rome',
    screenshot: 'only-on-failure',
  },
  webServer: [
    {
      command: `${berth} demo --fresh --listen ${new URL(server).host} --data-dir ${join(tmpdir(), 'berth-e2e')}`,
      url: `${server}/api/v1/openapi.json`,
      reuseExistingServer: true,
      timeout: 120_000,
    },
    {
      command: `npx vite preview --host 127.0.0.1 --port ${new URL(pages).port} --strictPort`,
      url: pages,
      env: { BERTH_URL: server },
      reuseExistingServer: true,
    },
  ],
});
