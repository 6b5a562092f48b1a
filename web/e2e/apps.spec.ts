/**
 * The other apps that Berth knows, as they really are: TensorBoard and MLflow show what was logged in the home, and a desktop is
 * drawn and heard. Each at an origin of its own, and below a path where there is no name for that.
 */
import { expect, test, type Page } from '@playwright/test';
import { Machine, preset, SITE, type Session } from './machine';

/** Real programs take their time to begin, and more of it on a machine that has other things to do. */
const BEGINS = { timeout: 90_000 };

const PRESETS = {
  curves: preset('Curves', 'tensorboard', 'PT1H', 500),
  experiments: preset('Experiments', 'mlflow', 'PT1H', 500),
  desktop: preset('A desktop', 'desktop', 'PT1H', 500),
};

/** As PyTorch's writer does it, without PyTorch. */
const LOGS_A_CURVE = `#!/usr/bin/env python3
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter("runs/first")
for step in range(20):
    value = Summary.Value(tag="loss/train", simple_value=1 / (step + 1))
    writer.add_event(Event(wall_time=1.7e9 + step, step=step, summary=Summary(value=[value])))
writer.close()
`;

/** Without a word of where. */
const LOGS_A_RUN = `#!/usr/bin/env python3
import mlflow
mlflow.set_experiment("bridges")
with mlflow.start_run(run_name="first span"):
    mlflow.log_metric("loss", 0.25)
`;

/** A name that nobody has, so that sessions are below a path of it. The browser is told where it leads. */
const ELSEWHERE = 'berth.test';
test.use({ launchOptions: { executablePath: process.env.CHROMIUM_BIN ?? '/usr/bin/chromium', args: ['--no-sandbox', `--host-resolver-rules=MAP ${ELSEWHERE} 127.0.0.1`] } });
test.describe.configure({ mode: 'serial', timeout: 300_000 });

let machine: Machine;
test.beforeAll(async () => {
  test.setTimeout(240_000);
  machine = await Machine.start(PRESETS);
  await Promise.all([work('tensorboard', LOGS_A_CURVE), work('mlflow', LOGS_A_RUN)]);
});
test.afterAll(() => machine?.stop());

/** Runs a script in an environment to its end. */
async function work(image: string, script: string): Promise<void> {
  const wishes = [{ task: { cores_milli: 500, memory_mib: 1_024 }, limit: 'PT10M' }];
  const path = `/sites/${SITE}/workloads`;
  const { number } = await machine.call<{ number: number }>('POST', path, { title: `Logs in ${image}`, wishes, program: { image, script } });
  const state = async () => (await machine.call<{ state: string }>('GET', `${path}/${number}`)).state;
  await expect.poll(state, { ...BEGINS, message: image }).toMatch(/COMPLETED|FAILED/);
  expect(await state(), JSON.stringify(await machine.call('GET', `${path}/${number}/log`))).toBe('COMPLETED');
}

async function begun(profile: keyof typeof PRESETS): Promise<Session> {
  const known = (await machine.call<{ items: Session[] }>('GET', `/sites/${SITE}/sessions`)).items.find((one) => one.name === profile);
  const { id } = known
    ? await machine.call<Session>('POST', `/sites/${SITE}/sessions/${known.id}/start`, {})
    : await machine.call<Session>('POST', `/sites/${SITE}/sessions`, { profile });
  await expect.poll(async () => (await machine.session(id)).state, BEGINS).toMatch(/ready|failed/);
  const session = await machine.session(id);
  expect(session.state, session.said).toBe('ready');
  return session;
}

/** What this page asks for that is not its own session's, or is not there. */
function watch(page: Page, session: Session, known: RegExp): string[] {
  const strays: string[] = [];
  // By way of Berth it comes in.
  const isWayIn = (url: string) => new URL(url).pathname.startsWith('/open/');
  page.on('response', (answer) => {
    const url = answer.url();
    if (!url.startsWith('http') || isWayIn(url) || known.test(url)) return;
    if (!url.startsWith(session.url) || answer.status() >= 400) strays.push(`${answer.status()} ${answer.request().method()} ${url}`);
  });
  return strays;
}

/** How many colours a canvas has, as far as it was looked at. */
const colours = (page: Page) =>
  page.locator('canvas').first().evaluate((canvas: HTMLCanvasElement) => {
    // Before it is connected, there is none of it.
    if (canvas.width === 0) return 0;
    const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height);
    const seen = new Set<number>();
    for (let at = 0; at < data.length; at += 4) seen.add((data[at]! << 16) | (data[at + 1]! << 8) | data[at + 2]!);
    return seen.size;
  });

for (const where of ['at an origin of its own', 'below a path'] as const) {
  test(`TensorBoard, MLflow and a desktop work ${where}`, async ({ browser }) => {
    if (where === 'below a path') await machine.moveTo(ELSEWHERE);
    const [curves, experiments, desktop] = await Promise.all([begun('curves'), begun('experiments'), begun('desktop')]);
    for (const one of [curves, experiments, desktop]) expect(new URL(one.url).pathname === '/').toBe(where === 'at an origin of its own');

    await test.step('TensorBoard shows a curve that was logged in the home', async () => {
      const page = await machine.page(browser);
      // Its fonts it asks for at the root, whatever it was told; the browser has others.
      const strays = watch(page, curves, /\/font-roboto\//);
      await page.goto(curves.url);
      const card = page.locator('scalar-card', { hasText: 'loss/train' });
      await expect(card.locator('tb-data-table')).toContainText('0.05', BEGINS);
      expect(strays).toEqual([]);
      await page.context().close();
    });

    await test.step('MLflow shows what was logged in the home, and takes what is made on its page', async () => {
      const page = await machine.page(browser);
      // Who somebody is, it knows only with people of its own; and that a name is free, it says by that.
      const strays = watch(page, experiments, /\/users\/current$|\/get-by-name\?/);
      await page.goto(`${experiments.url}#/experiments`);
      await expect(page.getByRole('link', { name: 'bridges' })).toBeVisible(BEGINS);
      await page.getByRole('button', { name: 'Create', exact: true }).click();
      await page.getByPlaceholder('Input an experiment name').fill(`made ${where}`);
      await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click();
      await page.waitForURL(/#\/experiments\/\d+/);
      await expect(page.getByText(`made ${where}`).first()).toBeVisible();
      expect(strays).toEqual([]);
      await page.context().close();
    });

    await test.step('a desktop is drawn, and hears what is typed', async () => {
      const page = await machine.page(browser);
      // Debian's noVNC asks for a version that it does not bring.
      const strays = watch(page, desktop, /\/package\.json$/);
      await page.goto(desktop.url);
      await expect.poll(() => colours(page), BEGINS).toBeGreaterThan(16);
      const file = `typed-${where.length}.txt`;
      await page.locator('canvas').first().click({ position: { x: 300, y: 200 } });
      await page.keyboard.type(`echo is $((6*7)) on $DISPLAY > ${file}\n`);
      await expect.poll(() => machine.written(file), BEGINS).toMatch(/^is 42 on :\d+\n$/);
      expect(strays).toEqual([]);
      await page.context().close();
    });
  });
}
