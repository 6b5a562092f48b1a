import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Failure } from '../api/problem';
import { en } from './en';
import { it as italian } from './it';
import { explain } from './problems';

const codes = readdirSync('../docs/errors')
  .map((file) => file.replace('.md', ''))
  .filter((name) => name !== 'README');

test('every problem of the server is explained in Italian, and no other', () => {
  const local = ['client.offline', 'client.unreadable'];
  expect(Object.keys(italian.problems).sort()).toEqual([...codes, ...local].sort());
});

const conflict = Failure.of({
  type: '/docs/errors/reservation.conflict',
  code: 'reservation.conflict',
  title: 'Taken',
  status: 409,
  detail: 'gpu-01 is taken.',
  hint: 'Take another.',
});

test('English says what the server says', () => {
  expect(explain(conflict, en, 'en')).toEqual({ title: 'Taken', detail: 'gpu-01 is taken.', hint: 'Take another.' });
});

test('Italian keeps the sentence about the case, and marks it as English', () => {
  const words = explain(conflict, italian, 'it');
  expect(words.title).toMatch(/occupato/);
  expect(words).toMatchObject({ detail: 'gpu-01 is taken.', detailLanguage: 'en' });
  expect(words.hintLanguage).toBeUndefined();
});

test('a server that never spoke is explained, too', () => {
  expect(explain(Failure.local('client.offline'), en, 'en').title).toBe('Berth cannot be reached');
});
