// Writes screenshots of the component page, to be looked at:  node bench/shoot.mjs FOLDER [view?query[@WxH] ...]

import { chromium } from '@playwright/test';
import { preview } from 'vite';

const [folder, ...wanted] = process.argv.slice(2);
const server = await preview({ configFile: new URL('./vite.config.ts', import.meta.url).pathname });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM_BIN ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
for (const [i, shot] of wanted.entries()) {
  const [query, size = '1280x800'] = shot.split('@');
  const [width, height] = size.split('x').map(Number);
  const page = await browser.newPage({ viewport: { width, height }, hasTouch: width < 500 });
  page.on('pageerror', (error) => console.error(shot, error.message));
  page.on('console', (message) => message.type() === 'error' && console.error(shot, message.text()));
  await page.clock.setFixedTime(new Date('2026-11-18T09:20:00Z'));
  await page.goto(`http://127.0.0.1:4199/?${query}`);
  await page.waitForTimeout(400);
  const drag = new URLSearchParams(query).get('drag');
  if (drag) {
    const [x1, y1, x2, y2] = drag.split(',').map(Number);
    await page.mouse.move(x1, y1);
    await page.mouse.down();
    await page.mouse.move(x2, y2, { steps: 4 });
    await page.waitForTimeout(100);
  }
  const keys = new URLSearchParams(query).get('keys');
  if (keys) {
    for (const key of keys.split(',')) await page.keyboard.press(key);
    await page.waitForTimeout(200);
  }
  await page.screenshot({ path: `${folder}/${String(i).padStart(2, '0')}.png` });
  await page.close();
}
await browser.close();
await server.close();
