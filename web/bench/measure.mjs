/**
 * The browser app in the real Chromium: `node bench/measure.mjs BINARY` prints one JSON object of key to number. `make bench ONLY=web`
 * runs it, with the release binary.
 */
import { chromium } from '@playwright/test';
import { measureApp } from './app.mjs';
import { measureViews } from './views.mjs';

const [binary] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM_BIN ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const figures = { ...(await measureViews(browser)), ...(await measureApp(browser, binary)) };
await browser.close();
console.log(JSON.stringify(figures));
