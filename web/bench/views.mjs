/**
 * The timeline and the month with 200 resources and 2,000 bookings, alone on a page: what they cost the renderer's main thread
 * until they can be used, and whether a drag across them ever stutters.
 */
import { build, preview } from 'vite';

const RUNS = 3;
const ready = { timeline: '[data-item]', month: '[data-day]' };
const configFile = new URL('./vite.config.ts', import.meta.url).pathname;

async function metricsOf(session) {
  const { metrics } = await session.send('Performance.getMetrics');
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}

async function open(browser, view, query = '') {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on('pageerror', (error) => {
    throw error;
  });
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  // The middle of the week that the data fills.
  await page.clock.setFixedTime(new Date('2026-11-18T09:20:00Z'));
  await page.goto(`http://127.0.0.1:4199/?view=${view}&rows=200&items=2000${query}`);
  await page.waitForSelector(ready[view]);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return { page, session };
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** Milliseconds of the main thread until the view can be used, the median of some loads. */
async function costOf(browser, view, query) {
  const runs = [];
  for (let run = 0; run < RUNS; run++) {
    const { page, session } = await open(browser, view, query);
    runs.push((await metricsOf(session)).TaskDuration * 1000);
    await page.close();
  }
  return median(runs);
}

/**
 * Frames over 50 ms during a drag that scrolls through all rows. On a loaded machine a frame is late because others have the
 * processor, so what counts is a task's own time on the main thread.
 */
async function longFramesOfDrag(browser) {
  const { page, session } = await open(browser, 'timeline');
  const events = [];
  session.on('Tracing.dataCollected', ({ value }) => events.push(...value));
  const includedCategories = ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline'];
  await session.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories } });
  // From empty time at the top across the rows and beyond the lower edge, where it scrolls until the last row.
  await page.mouse.move(1150, 140);
  await page.mouse.down();
  for (let step = 0; step <= 60; step++) await page.mouse.move(1150 - step * 12, 140 + step * 12);
  await page.mouse.move(430, 890);
  await page.waitForFunction(() => {
    const grid = document.querySelector('[role=treegrid]');
    return grid.scrollTop + grid.clientHeight >= grid.scrollHeight - 1;
  });
  await page.mouse.up();
  const complete = new Promise((done) => session.once('Tracing.tracingComplete', done));
  await session.send('Tracing.end');
  await complete;
  await page.close();
  const isMain = (each) => each.name === 'thread_name' && each.args.name === 'CrRendererMain';
  const threads = new Set(events.filter(isMain).map(({ pid, tid }) => `${pid}/${tid}`));
  const tasks = events.filter(({ name, pid, tid }) => name === 'RunTask' && threads.has(`${pid}/${tid}`)).map(({ tdur }) => (tdur ?? 0) / 1000);
  if (tasks.length === 0) throw new Error('the trace of the drag holds no task');
  return { long: tasks.filter((ms) => ms > 50).length, longest: Math.max(...tasks) };
}

export async function measureViews(browser) {
  await build({ configFile, logLevel: 'warn' });
  const server = await preview({ configFile });
  try {
    const drag = await longFramesOfDrag(browser);
    return {
      'web.timeline_200x2000.cpu_ms': await costOf(browser, 'timeline', ''),
      'web.month_2000.cpu_ms': await costOf(browser, 'month', '&days=28'),
      'web.drag.long_frames': drag.long,
      'web.drag.longest_ms': drag.longest,
    };
  } finally {
    await server.close();
  }
}
