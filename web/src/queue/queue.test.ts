import { describe, expect, test } from 'vitest';
import { en } from '../i18n/en';
import { Formats } from '../i18n/format';
import { it as italian } from '../i18n/it';
import { HOUR, MINUTE } from '../time/span';
import { parseMemory, periodMs, taskCount, writeMemory, writePeriod } from './amounts';
import { commandOf, freshDraft, fromProfile, fromWorkload, isAsProfile, splitCommand, toNewWorkload, type Draft } from './draft';
import { inOrder } from './order';
import { marksOf, placeOf, storyOf } from './story';
import type { Profile, Run, Wish, Workload } from './types';
import { outcomeWords, remedyWords, whyWords, wishesWords, wishWords } from './words';

const english = new Formats('en-GB', 'UTC', en.timeline.units);
const italiano = new Formats('it', 'UTC', italian.timeline.units);
const NOON = Date.parse('2026-11-16T12:00:00Z');
/** Which of its spaces may break a line is not what these tests are about. */
const plain = (text: string) => text.replaceAll('\u00a0', ' ');
const at = (moment: number) => new Date(moment).toISOString();

const one: Wish = { tasks: 1, task: { cores_milli: 8_000, memory_mib: 65_536, gpus: { count: 1, where: ['gpu_model=A100'] } }, limit: 'PT8H' };

function workload(change: Partial<Workload> = {}): Workload {
  const ref = { id: 'x', name: 'torino', title: 'Torino' };
  return {
    id: 'job_1', number: 1, site: ref, owner: { id: 'per_1', login: 'ada', display_name: 'Ada' }, title: 'training', class: 'guaranteed', state: 'WAITING',
    wishes: [one], requeue: true, waiting: '0', counts: { running: 0, completed: 0, failed: 0 }, cancelled: 0, runs: [], since: at(NOON - 2 * HOUR), version: 1, ...change,
  } as Workload;
}

function run(change: Partial<Run> = {}): Run {
  return { id: 'run_1', task: 0, attempt: 1, wish: 0, state: 'running', nodes: [], began: at(NOON - HOUR), until: at(NOON + 7 * HOUR), until_by: 'limit', ...change } as Run;
}

describe('asks in words', () => {
  test('a gang says how many tasks of what, and for how long', () => {
    expect(plain(wishWords({ ...one, tasks: 4 }, en, english))).toBe('4 × (1 GPU A100, 8 cores, 64 GiB), up to 8 h');
  });
  test('one task needs no brackets, and half a core is half a core', () => {
    expect(plain(wishWords({ task: { cores_milli: 500, memory_mib: 512 }, limit: 'PT30M' }, en, english))).toBe('0.5 cores, 512 MiB, up to 30 min');
  });
  test('shares, slices and other conditions are told', () => {
    const task = { cores_milli: 1_000, memory_mib: 1_536 };
    expect(plain(wishWords({ task: { ...task, gpus: { share: 250 } }, limit: 'PT1H' }, en, english))).toBe('25% of a GPU, 1 core, 1.5 GiB, up to 1 h');
    expect(plain(wishWords({ task: { ...task, gpus: { slice: '1g.10gb', count: 2 } }, limit: 'PT1H' }, en, english))).toContain('2 slices 1g.10gb');
    expect(plain(wishWords({ task: { ...task, gpus: { count: 2, where: ['gpu_memory_gb>=40'] } }, limit: 'PT1H' }, en, english))).toContain('2 GPUs (gpu_memory_gb>=40)');
  });
  test('ways that would also do are named, in Italian too', () => {
    expect(plain(wishesWords([one, { ...one, limit: 'PT30M' }], italian, italiano))).toBe('1 GPU A100, 8 core, 64 GiB, fino a 8 h oppure 1 GPU A100, 8 core, 64 GiB, fino a 30 min');
  });
  test('why it waits is the server’s sentence in English and our own elsewhere', () => {
    const waits = { code: 'quota', words: 'its project holds as many GPUs as it may', remedy: 'an admin can raise the quota' };
    expect(whyWords(waits, en, 'en').text).toBe('Its project holds as many GPUs as it may.');
    expect(whyWords(waits, italian, 'it')).toEqual({ text: italian.queue.why.quota });
    expect(whyWords({ code: 'new_code', words: 'who knows' }, italian, 'it')).toEqual({ text: 'Who knows.', language: 'en' });
    expect(remedyWords({ code: 'quota', words: '' }, en, 'en')).toBeNull();
  });
  test('an outcome with an exit code names it', () => {
    expect(outcomeWords({ failed: { exit_code: 137 } }, en)).toContain('137');
    expect(outcomeWords('preempted', en)).toBe(en.queue.outcome.preempted);
  });
});

describe('amounts', () => {
  test('periods are read and written to the second', () => {
    expect(periodMs('PT1H30M')).toBe(90 * MINUTE);
    expect(periodMs('P7DT1S')).toBe(168 * HOUR + 1_000);
    expect(periodMs('soon')).toBe(0);
    expect(writePeriod(90 * MINUTE + 30_000)).toBe('PT1H30M30S');
  });
  test('the tasks of an array are counted', () => {
    expect(['', '0', '0-39', '1,3,10-20:2'].map(taskCount)).toEqual([0, 1, 40, 8]);
  });
  test('memory is read as people write it', () => {
    expect(['64GiB', '64', '512 MiB', '1,5T', 'much'].map(parseMemory)).toEqual([65_536, 65_536, 512, 1_572_864, null]);
    expect([65_536, 1_000].map(writeMemory)).toEqual(['64GiB', '1000MiB']);
  });
});

describe('the story of a workload', () => {
  test('what waits is drawn to now, and what is expected from then on', () => {
    const story = storyOf(workload({ waits: { code: 'no_room', words: '', forecast: at(NOON + HOUR) } }), NOON);
    expect(story.rows[0]?.pieces.map(({ kind, start, end }) => [kind, (start - NOON) / HOUR, (end - NOON) / HOUR])).toEqual([
      ['waited', -2, 0],
      ['expected', 1, 9],
    ]);
  });
  test('a preempted run is followed by a wait and the next run, which goes to its limit', () => {
    const first = run({ id: 'a', state: 'ended', outcome: 'preempted', began: at(NOON - 100 * MINUTE), ended_at: at(NOON - 80 * MINUTE) });
    const second = run({ id: 'b', attempt: 2 });
    const story = storyOf(workload({ state: 'RUNNING', waiting: '', runs: [second, first] }), NOON);
    expect(story.rows[0]?.pieces.map(({ kind }) => kind)).toEqual(['waited', 'run', 'waited', 'run', 'left']);
    expect(story.rows[0]?.pieces.at(-1)?.end).toBe(NOON + 7 * HOUR);
  });
  test('what is over ends with its last run', () => {
    const ended = run({ state: 'ended', outcome: 'completed', ended_at: at(NOON - 30 * MINUTE) });
    const story = storyOf(workload({ state: 'COMPLETED', waiting: '', runs: [ended] }), NOON);
    expect(story.rows[0]?.pieces.at(-1)).toMatchObject({ kind: 'run', end: NOON - 30 * MINUTE, end_of: 'completed' });
    expect(story.end).toBeGreaterThan(NOON - 30 * MINUTE);
  });
  test('an array has a row for each task that began, and says how many have none', () => {
    const runs = Array.from({ length: 30 }, (_, task) => run({ id: `r${task}`, task }));
    const story = storyOf(workload({ state: 'RUNNING', array: { tasks: '0-39' }, waiting: '30-39', runs }), NOON);
    expect([story.rows.length, story.left_out, story.not_begun]).toEqual([24, 6, 10]);
  });
  test('places run from 0 to 100, and the scale names round moments', () => {
    const span = { start: NOON, end: NOON + 10 * HOUR };
    expect([NOON - HOUR, NOON + 5 * HOUR, NOON + 20 * HOUR].map((moment) => placeOf(moment, span))).toEqual([0, 50, 100]);
    expect(marksOf({ start: NOON + MINUTE, end: NOON + 4 * HOUR }, HOUR, 5)).toEqual([1, 2, 3, 4].map((hour) => NOON + hour * HOUR));
  });
});

describe('a list', () => {
  test('what begins next is on top, then what ends next, then what ended last', () => {
    const list = [
      workload({ number: 1, state: 'COMPLETED', ended_at: at(NOON) }),
      workload({ number: 2, state: 'RUNNING', runs: [run()] }),
      workload({ number: 3 }),
      workload({ number: 4, waits: { code: 'no_room', words: '', forecast: at(NOON) } }),
      workload({ number: 5, state: 'COMPLETED', ended_at: at(NOON + HOUR) }),
    ];
    expect(inOrder(list).map(({ number }) => number)).toEqual([4, 3, 2, 5, 1]);
  });
});

describe('a submission', () => {
  const profile: Profile = { title: 'One GPU', class: 'guaranteed', wishes: [{ ...one, near: 'anywhere' }] };
  const draft = (change: Partial<Draft> = {}): Draft => ({ ...freshDraft(), title: 'train', ...fromProfile('gpu', profile), ...change });

  test('an untouched preset is sent by its name, and typed by its name', () => {
    expect(isAsProfile(draft(), profile)).toBe(true);
    expect(toNewWorkload(draft(), profile, [])).toEqual({ title: 'train', profile: 'gpu' });
    expect(commandOf(draft(), 'torino', profile).text).toBe('berth submit --site torino --title train --profile gpu');
  });
  test('other ways, seats, a reservation and a script are sent, and typed where they can be', () => {
    const more = draft({ or: [{ gpus: 2, limitMs: 4 * HOUR }], seats: [{ resource: 'matlab', amount: 2 }], inside: 'rsv_1', script: '#!/bin/sh', command: 'no' });
    const body = toNewWorkload(more, profile, []);
    expect(body.wishes?.map(({ task, limit }) => [task.gpus?.count, limit])).toEqual([[1, 'PT8H'], [2, 'PT4H']]);
    expect([body.seats, body.inside, body.program]).toEqual([[{ resource: 'matlab', amount: 2 }], 'rsv_1', { script: '#!/bin/sh' }]);
    const { text, unsaid } = commandOf(more, 'torino', profile);
    expect(text).toContain('--or 2:4h --seats matlab:2 --inside rsv_1');
    expect([text.includes(' -- '), unsaid]).toEqual([false, ['script']]);
  });
  test('a changed one is sent as what it asks for', () => {
    const body = toNewWorkload(draft({ tasks: 2, class: 'opportunistic' }), profile, []);
    expect(body).toEqual({ title: 'train', class: 'opportunistic', wishes: [{ tasks: 2, task: one.task, limit: 'PT8H' }] });
  });
  test('the command says the same as the form', () => {
    const { text, unsaid } = commandOf(
      draft({ title: 'my run', gpuCount: 2, array: '0-99 % 8', after: '#812', command: 'python train.py --lr "1 e-3"', held: true, image: 'torch' }), 'torino', profile);
    expect(text).toBe("berth submit --site torino --title 'my run' --gpus 2 --gpu-model A100 --cores 8 --memory 64GiB --time 8h --array 0-99%8 --after 812 --hold -- python train.py --lr '1 e-3'");
    expect(unsaid).toEqual(['image']);
  });
  test('the same again asks for the same', () => {
    const before = workload({ title: 'sweep', array: { tasks: '0-9', at_once: 2 }, program: { command: ['sh', '-c', 'echo hi'] } as NonNullable<Workload['program']> });
    const body = toNewWorkload({ ...freshDraft(), ...fromWorkload(before) }, undefined, []);
    expect(body).toEqual({ title: 'sweep', class: 'guaranteed', wishes: [one], array: { tasks: '0-9', at_once: 2 }, program: { command: ['sh', '-c', 'echo hi'] } });
  });
  test('arrays, dependencies, environments and commands are read', () => {
    const body = toNewWorkload(draft({ array: '0-9%2', environment: 'A=1\n\nB=x=y', command: "sh -c 'echo hi'", requeue: false }), profile, ['job_2']);
    expect(body).toMatchObject({
      array: { tasks: '0-9', at_once: 2 },
      after: [{ workload: 'job_2', only_if: 'completed' }],
      program: { environment: { A: '1', B: 'x=y' }, command: ['sh', '-c', 'echo hi'] },
      requeue: false,
    });
    expect(splitCommand('a "b \\" c"d')).toEqual(['a', 'b " cd']);
  });
});
