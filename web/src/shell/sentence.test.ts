import { expect, test } from 'vitest';
import { en } from '../i18n/en';
import { it as italian } from '../i18n/it';
import { readSentence } from './sentence';

const names = new Set(['gpu-04', 'lab']);
// A Sunday, 20:00 in Rome.
const now = Date.parse('2026-11-15T19:00:00Z');
const read = (text: string, words = en.palette.words) => {
  const said = readSentence(text, names, words, now, 'Europe/Rome');
  return said && [said.resource, ...[said.span.start, said.span.end].map((moment) => new Date(moment).toISOString().slice(0, 16))];
};

test('a booking in a line', () => {
  expect(read('book gpu-04 tomorrow 9-12')).toEqual(['gpu-04', '2026-11-16T08:00', '2026-11-16T11:00']);
  expect(read('book lab fri 14:30 for 90m')).toEqual(['lab', '2026-11-20T13:30', '2026-11-20T15:00']);
  expect(read('Book gpu-04 22-6')).toEqual(['gpu-04', '2026-11-15T21:00', '2026-11-16T05:00']);
});

test('a time of day that is past means tomorrow', () => {
  expect(read('book gpu-04 9')).toEqual(['gpu-04', '2026-11-16T08:00', '2026-11-16T10:00']);
});

test('and in Italian', () => {
  expect(read('prenota gpu-04 domani 9-12', italian.palette.words)).toEqual(['gpu-04', '2026-11-16T08:00', '2026-11-16T11:00']);
  expect(read('prenota lab gio 9 per 3h', italian.palette.words)).toEqual(['lab', '2026-11-19T08:00', '2026-11-19T11:00']);
});

test('what is no booking with a time is none', () => {
  for (const text of ['', 'gpu-04 9-12', 'book gpu-04', 'book nothing 9-12', 'find gpu']) expect(read(text), text).toBeNull();
});
