import { expect, test } from 'vitest';
import type { Settings } from '../../../queue/types';
import { freshProfile, freshQuota, fromSettings, toSettings } from './form';

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
