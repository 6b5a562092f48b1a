// The timeline and the calendars alone, on the page of bench/ with generated data and the server's content policy.

import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: '.',
  testMatch: '*.test.ts',
  timeout: 60_000,
  workers: 1,
  reporter: [['list']],
  outputDir: '../../test-results/timeline',
  use: {
    baseURL: 'http://127.0.0.1:4199',
    viewport: { width: 1280, height: 800 },
    timezoneId: 'Europe/Rome',
    locale: 'en-GB',
    launchOptions: { executablePath: process.env.CHROMIUM_BIN ?? '/usr/bin/chromium', args: ['--no-sandbox'] },
  },
  webServer: {
    command: 'npx vite build --config bench/vite.config.ts && npx vite preview --config bench/vite.config.ts',
    cwd: '../..',
    url: 'http://127.0.0.1:4199',
    reuseExistingServer: false,
    timeout: 120_000,
  },
});
