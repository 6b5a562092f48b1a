import { describe, expect, test } from 'vitest';
import { en } from '../i18n/en';
import { Formats } from '../i18n/format';
import { it as italian } from '../i18n/it';
import { activityOf, byLastUse, inOrder } from './order';
import { rightsOn } from './rights';
import { attemptOf, failuresInARow, stepsOf } from './steps';
import { mayOpen, targetOf } from './target';
import type { Session, SessionStart, StartableProfile } from './types';
import { idleWords, lentWords, profileWords, saidWords, tailOf, tookWords } from './words';

const NOW = Date.parse('2026-11-16T12:00:00Z');
const at = (seconds: number) => new Date(NOW + seconds * 1_000).toISOString();
const format = new Formats('en-GB', 'UTC', en.timeline.units);

function start(over: Partial<SessionStart> = {}): SessionStart {
  return { asked_at: at(-60), is_automatic: false, has_failed: false, ...over };
}

function session(over: Partial<Session> = {}): Session {
  return {
    id: 'ses_1', site: { id: 'sit_1', name: 'torino' }, owner: { id: 'per_1', login: 'ada', display_name: 'Ada' }, name: 'lab', profile: 'lab', state: 'waiting', since: at(-60),
    url: 'http://x.sessions.localhost/', shared: [], active_at: at(-60), is_warned: false, is_borrowed: false, is_given_up: false, created_at: at(-60), version: 1, starts: [start()], ...over,
  } as Session;
}

const states = (one: Session, began: number | null = null) => stepsOf(one, began, NOW).map(({ state }) => state);
const took = (one: Session, began: number | null = null) => stepsOf(one, began, NOW).map(({ tookMs }) => (tookMs === null ? null : tookMs / 1_000));

describe('steps', () => {
  test('what waits counts its wait, and what comes after is still to come', () => {
    expect(states(session())).toEqual(['now', 'ahead', 'ahead', 'ahead']);
    expect(took(session())).toEqual([60, null, null, null]);
  });

  test('what has a place but does not run yet is there', () => {
    expect(states(session(), NOW - 5_000)).toEqual(['done', 'now', 'ahead', 'ahead']);
    expect(took(session(), NOW - 5_000)[0]).toBe(55);
  });

  test('what starts counts from when it got its place, known or not', () => {
    const one = session({ state: 'starting', since: at(-8) });
    expect(states(one, NOW - 10_000)).toEqual(['done', 'done', 'now', 'ahead']);
    expect(took(one, NOW - 10_000)).toEqual([50, null, 10, null]);
    expect(took(one)).toEqual([52, null, 8, null]);
  });

  test('what is ready says how long each step took, whenever one looks', () => {
    const one = session({ state: 'ready', since: at(-40), starts: [start({ ready_at: at(-40) })] });
    expect(states(one, NOW - 50_000)).toEqual(['done', 'done', 'done', 'done']);
    expect(took(one, NOW - 50_000)).toEqual([10, null, 10, null]);
  });

  test('what failed stands where it failed, and its clock with it', () => {
    const failed = start({ has_failed: true, ended_at: at(-30) });
    const one = session({ state: 'failed', since: at(-30), starts: [failed] });
    expect(states(one, NOW - 50_000)).toEqual(['done', 'done', 'failed', 'ahead']);
    expect(took(one, NOW - 50_000)).toEqual([10, null, 20, null]);
    expect(states(one)).toEqual(['failed', 'ahead', 'ahead', 'ahead']);
  });

  test('what was stopped, or failed after it had answered, is on no way any more', () => {
    expect(states(session({ state: 'stopped' }))).toEqual([]);
    expect(states(session({ state: 'failed', starts: [start({ ready_at: at(-40), has_failed: true })] }), NOW)).toEqual([]);
  });

  test('clocks that differ never show a time below nothing', () => {
    expect(took(session({ starts: [start({ asked_at: at(30) })] }))[0]).toBe(0);
  });

  test('tries are counted back to the last that worked', () => {
    const failed = start({ has_failed: true });
    expect(attemptOf([start()])).toBe(1);
    expect(attemptOf([start(), failed, failed, start({ ready_at: at(-9) }), failed])).toBe(3);
    expect(failuresInARow([failed, failed, start()])).toBe(2);
    expect(failuresInARow([failed, failed])).toBe(2);
  });
});

describe('order', () => {
  test('what is on comes first, then the latest', () => {
    const list = [session({ name: 'old', state: 'stopped', since: at(-900) }), session({ name: 'new', state: 'failed', since: at(-10) }), session({ name: 'on', state: 'ready', since: at(-9_000) })];
    expect(inOrder(list).map(({ name }) => name)).toEqual(['on', 'new', 'old']);
  });

  test('what one started last comes first, and what cannot be started last', () => {
    const profile = (name: string, more: Partial<StartableProfile> = {}) => ({ name, title: name, wishes: [], session: { app: 'jupyterlab' }, app: { title: 'App', command: ['x'], serves: 'socket' }, ...more }) as unknown as StartableProfile;
    const list = [profile('a', { paused: { since: at(0), said: 'no' } }), profile('b'), profile('c'), profile('d', { app: undefined as never })];
    expect(byLastUse(list, [session({ profile: 'c' }), session({ profile: 'a' })]).map(({ name }) => name)).toEqual(['c', 'b', 'a', 'd']);
  });

  test('each person’s sessions are counted', () => {
    const used = { cpu_s: 1, memory_mib: 100, memory_peak_mib: 200 };
    const bob = { id: 'per_2', login: 'bob', display_name: 'Bob' };
    const list = [session({ state: 'ready', used }), session({ state: 'stopped', active_at: at(-5) }), session({ owner: bob, state: 'starting', used, active_at: at(-1) })];
    expect(activityOf(list).map(({ person, sessions, live, memoryMib }) => [person.login, sessions, live, memoryMib])).toEqual([['bob', 1, 1, 100], ['ada', 2, 1, 100]]);
  });
});

describe('where to go', () => {
  test('only into the session', () => {
    const url = 'http://abc.sessions.localhost:8080/';
    expect(targetOf(url, '/lab/tree/a.ipynb?x=1')).toBe('http://abc.sessions.localhost:8080/lab/tree/a.ipynb?x=1');
    for (const evil of ['', 'lab', '//evil.example/', '/\\evil.example', 'https://evil.example', 'javascript:alert(1)']) expect(targetOf(url, evil), evil).toBe(url);
  });

  test('where sessions share an address, never out of its path', () => {
    const url = 'https://berth.example/s/abc/';
    expect(targetOf(url, '/lab')).toBe('https://berth.example/s/abc/lab');
    for (const evil of ['/../other/', '/%2e%2e/other/', '/a/../../../api/v1/me']) expect(targetOf(url, evil), evil).toBe(url);
  });

  test('what sends people back is not opened again at once', () => {
    const kept = new Map<string, string>();
    const memory = { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => void kept.set(key, value) };
    expect(mayOpen(memory, 'a', NOW)).toBe(true);
    expect(mayOpen(memory, 'a', NOW + 1_000)).toBe(false);
    expect(mayOpen(memory, 'b', NOW + 1_000)).toBe(true);
    expect(mayOpen(memory, 'a', NOW + 60_000)).toBe(true);
  });
});

describe('rights', () => {
  test('the owner opens, an admin needs a reason, a colleague what they were given, a stranger nothing', () => {
    const one = session({ state: 'ready', shared: [{ person: { id: 'per_3', login: 'cy', display_name: 'Cy' }, access: 'view' }] });
    const may = (person: string, isAdmin: boolean) => {
      const { canOpen, canVisit, canStop, canChange } = rightsOn(one, person, isAdmin);
      return [canOpen, canVisit, canStop, canChange];
    };
    expect(may('per_1', false)).toEqual([true, false, true, true]);
    expect(may('per_2', true)).toEqual([false, true, true, true]);
    expect(may('per_3', false)).toEqual([true, false, false, false]);
    expect(may('per_4', false)).toEqual([false, false, false, false]);
  });

  test('only its owner starts it, and only what is over is removed', () => {
    const over = session({ state: 'failed' });
    expect([rightsOn(over, 'per_1', false).canStart, rightsOn(over, 'per_2', true).canStart]).toEqual([true, false]);
    expect([rightsOn(over, 'per_1', false).canRemove, rightsOn(session(), 'per_1', false).canRemove]).toEqual([true, false]);
  });
});

describe('words', () => {
  test('short times in seconds, long ones in minutes', () => {
    expect(tookWords(800, en, format)).toBe('1 s');
    expect(tookWords(89_000, en, format)).toBe('89 s');
    expect(tookWords(200_000, en, format)).toBe('3 min');
  });

  test('what the server said is a sentence, and English elsewhere, too', () => {
    expect(saidWords('its program ended with the code 1', 'en')).toEqual({ text: 'Its program ended with the code 1.' });
    expect(saidWords('done.', 'it')).toEqual({ text: 'Done.', language: 'en' });
  });

  test('how idle it is, only while it is ready', () => {
    const ready = session({ state: 'ready', idle_until: at(1_200) });
    expect(idleWords(session({ idle_until: at(60) }), NOW, en, format)).toBeNull();
    expect(idleWords(ready, NOW, en, format)).toBe('idle: stopped 12:20');
    expect(idleWords({ ...ready, is_warned: true }, NOW, en, format)).toContain('It is stopped in 20 minutes.');
    expect(idleWords({ ...ready, kept_until: at(3_600) }, NOW, en, format)).toBe('kept until 13:00');
    expect(idleWords({ ...ready, kept_until: at(-10) }, NOW, italian, format)).toBe('inattiva: si ferma 12:20');
  });

  test('that its GPUs are lent while nobody works in it', () => {
    const idle = session({ state: 'ready', active_at: at(-1_200) });
    expect(lentWords(idle, NOW, en, format)).toBeNull();
    const lends = { ...idle, lends_since: at(-300) };
    expect(lentWords(lends, NOW, en, format)).toBe('Idle since 11:40. Others may use its GPUs until somebody works in it again.');
    expect(lentWords({ ...lends, is_borrowed: true }, NOW, italian, format)).toContain('Le sue GPU sono prestate ad altri');
  });

  test('a profile in words', () => {
    const wishes = [{ task: { cores_milli: 2_000, memory_mib: 4_096 }, limit: 'PT8H' }];
    const profile = { name: 'lab', title: 'Lab', wishes, session: { app: 'jupyterlab', idle: 'PT1H', projects: ['vision', 'language'] } } as unknown as StartableProfile;
    expect(profileWords(profile, en, format).what.replaceAll('\u00a0', ' ')).toBe('2 cores, 4 GiB, up to 8 h');
    expect(profileWords(profile, en, format).terms).toBe('stopped after 1 h without work · only for vision and language');
  });

  test('the end of a log', () => {
    expect(tailOf('a\nb\nc\n\n', 2)).toEqual({ lines: 'b\nc', before: 1 });
    expect(tailOf('', 2)).toEqual({ lines: '', before: 0 });
  });
});
