import { expect, test } from 'vitest';
import type { Settings } from '../../../queue/types';
import { freshApp, freshProfile, freshQuota, freshSession, fromSettings, toSettings } from './form';

const settings: Settings = {
  roles: { gpu: 'gpu', server: 'node' },
  half_life: 'PT168H',
  grace: 'PT30S',
  checkpoint: 'PT2M',
  run_min: 'PT5M',
  limit_max: 'PT72H',
  waiting_max: 10_000,
  shares: { vision: 5 },
  quotas: [
    { project: 'vision', amounts: { gpus_milli: 72_000, gpus_milli_guaranteed: 500 }, hours: '08:00-18:00' },
    { person: 'ada', amounts: { gpu_hours_month: 100 } },
    { amounts: { cores_milli: 1_000 } },
  ],
  levels: { later: { number: -10, projects: [] }, deadline: { number: 10, projects: ['language'] } },
  profiles: {
    gpu: {
      title: 'One GPU', class: 'guaranteed',
      wishes: [
        { tasks: 1, task: { cores_milli: 8_000, memory_mib: 65_536, gpus: { count: 1, where: ['gpu_memory_gb>=40'] } }, limit: 'PT8H', near: 'anywhere', at_least: 'anywhere' },
        { tasks: 1, task: { cores_milli: 1_000, memory_mib: 1_024 }, limit: 'PT1H', near: 'anywhere', at_least: 'anywhere' },
      ],
    },
    lab: {
      title: 'A notebook', class: 'guaranteed',
      wishes: [{ tasks: 1, task: { cores_milli: 2_000, memory_mib: 4_096 }, limit: 'PT8H', near: 'anywhere', at_least: 'anywhere' }],
      session: { app: 'jupyterlab', environment: 'torch@2', idle: 'PT30M', lend_after: null, projects: ['vision'] },
    },
  },
  apps: {
    notes: { title: 'Notes', command: ['notes', '--port', '7000'], serves: { port: 7_000 }, health: 'up', knows_its_base: true, environment: 'notes@2', activity: 'jupyter', variables: { MODE: 'a=b' } },
  },
  lends: true,
};

test('settings that nobody touched go back as they came, with what the form cannot show', () => {
  expect(toSettings(fromSettings(settings))).toEqual(settings);
});

test('a preset that was changed is written anew, and its other ways stay', () => {
  const form = fromSettings(settings);
  form.profiles[0]!.draft.gpuCount = 2;
  const { wishes } = toSettings(form).profiles.gpu!;
  expect(wishes[0]?.task.gpus).toEqual({ count: 2 });
  expect(wishes[1]).toEqual(settings.profiles.gpu!.wishes[1]);
});

test('types without a part, weights that were emptied and quotas of the whole site leave nothing behind', () => {
  const form = fromSettings(settings);
  form.roles.gpu = '';
  form.weights.vision = null;
  form.quotas = [{ ...freshQuota(), whose: 'site', name: 'left over', gpus: 8 }];
  form.profiles = [{ ...freshProfile(), name: ' cpu ', title: 'Cores' }];
  const after = toSettings(form);
  expect([after.roles, after.shares, after.quotas]).toEqual([{ server: 'node' }, {}, [{ amounts: { gpus_milli: 8_000 } }]]);
  expect(Object.keys(after.profiles)).toEqual(['cpu']);
});

test('a preset becomes one for sessions, and none again', () => {
  const form = fromSettings(settings);
  form.profiles[0]!.session = freshSession('notes');
  form.profiles[1]!.session = null;
  const { profiles } = toSettings(form);
  expect(profiles.gpu!.session).toEqual({ app: 'notes', idle: 'PT1H', lend_after: 'PT15M', projects: [] });
  expect(profiles.lab!.session).toBeUndefined();
});

test('an app is written with one word of its command in each line', () => {
  const form = fromSettings(settings);
  form.apps = [{ ...freshApp(), name: ' board ', title: 'Board', command: 'board\n\n--socket={socket}\n', variables: 'A=1\nnothing\nB=2=3' }];
  expect(toSettings(form).apps).toEqual({
    board: { title: 'Board', command: ['board', '--socket={socket}'], serves: 'socket', health: '', knows_its_base: false, activity: 'traffic', variables: { A: '1', B: '2=3' } },
  });
});
