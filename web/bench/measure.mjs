// Measures the timeline and the calendars in the real Chromium and prints one line per figure:
//   node bench/measure.mjs [timeline|month|week|day|agenda ...]
// It builds nothing: run `npx vite build --config bench/vite.config.ts` before.

import { chromium } from '@playwright/test';
import { preview } from 'vite';

const CHROMIUM = process.env.CHROMIUM_BIN ?? '/usr/bin/chromium';
const RUNS = Number(process.env.RUNS ?? 3);
const views = process.argv.slice(2);
const asked = views.length > 0 ? views : ['timeline', 'month', 'week', 'day', 'agenda'];
const ready = { timeline: '[data-item]', month: '[data-day]', week: '[data-item]', day: '[data-item]', agenda: '[data-item]' };

const server = await preview({ configFile: new URL('./vite.config.ts', import.meta.url).pathname });
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });

async function metricsOf(session) {
  const { metrics } = await session.send('Performance.getMetrics');
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}

async function open(view, query = '') {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on('pageerror', (error) => console.error('page:', error.message));
  page.on('console', (message) => message.type() === 'error' && console.error('console:', message.text()));
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  // The middle of the week that the data fills.
  await page.clock.setFixedTime(new Date('2026-11-18T09:20:00Z'));
  await page.goto(`http://127.0.0.1:4199/?view=${view}&rows=200&items=2000${query}`);
  await page.waitForSelector(ready[view]);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return { page, session };
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

for (const view of asked) {
  const runs = [];
  let elements = 0;
  for (let i = 0; i < RUNS; i++) {
    const { page, session } = await open(view, view === 'month' ? '&days=28' : '');
    runs.push(await metricsOf(session));
    elements = await page.evaluate(() => document.querySelectorAll('*').length);
    await page.close();
  }
  const ms = (name) => Math.round(median(runs.map((run) => run[name])) * 1000);
  console.log(
    `${view}_200x2000: cpu_ms ${ms('TaskDuration')} (script ${ms('ScriptDuration')}, layout ${ms('LayoutDuration')}, style ${ms('RecalcStyleDuration')}), elements ${elements}`,
  );
}

if (asked.includes('timeline')) {
  const { page, session } = await open('timeline');
  await page.evaluate(() => {
    const frames = [];
    window.frames50 = frames;
    let last = performance.now();
    const next = (now) => {
      frames.push(now - last);
      last = now;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
    window.longTasks = [];
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => window.longTasks.push(entry.duration))).observe({ type: 'longtask' });
  });
  const before = await metricsOf(session);
  // On a loaded machine a frame is late because others have the processor; a task's own CPU time says what we cost.
  const events = [];
  session.on('Tracing.dataCollected', ({ value }) => events.push(...value));
  await session.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories: ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline'] } });
  // From empty time at the top across the rows and beyond the lower edge, so that it scrolls through all 200.
  await page.mouse.move(1150, 140);
  await page.mouse.down();
  for (let i = 0; i <= 60; i++) {
    await page.mouse.move(1150 - i * 12, 140 + i * 12);
    await page.waitForTimeout(16);
  }
  await page.mouse.move(430, 890);
  await page.waitForTimeout(4000);
  const after = await metricsOf(session);
  const { frames, tasks, top } = await page.evaluate(() => ({
    frames: window.frames50,
    tasks: window.longTasks,
    top: document.querySelector('[role=treegrid]').scrollTop,
  }));
  await page.mouse.up();
  const complete = new Promise((done) => session.once('Tracing.tracingComplete', done));
  await session.send('Tracing.end');
  await complete;
  const mains = new Set(events.filter((each) => each.name === 'thread_name' && each.args.name === 'CrRendererMain').map((each) => `${each.pid}/${each.tid}`));
  const tasks_cpu = events
    .filter((each) => each.name === 'RunTask' && mains.has(`${each.pid}/${each.tid}`))
    .map((each) => (each.tdur ?? 0) / 1000)
    .sort((a, b) => b - a);
  console.log(`drag tasks by CPU ms: ${tasks_cpu.slice(0, 8).map((ms) => ms.toFixed(1)).join(', ')} of ${tasks_cpu.length}`);
  const longest = Math.max(...frames.slice(1));
  console.log(
    `drag: frames ${frames.length}, longest_ms ${Math.round(longest)}, long_frames ${frames.slice(1).filter((ms) => ms > 50).length}, long_tasks ${tasks.length}${tasks.length ? ` (${tasks.map(Math.round).join(', ')})` : ''}, cpu_ms ${Math.round((after.TaskDuration - before.TaskDuration) * 1000)}, scrolled_px ${Math.round(top)}`,
  );
  await page.close();
}

await browser.close();
await server.close();
