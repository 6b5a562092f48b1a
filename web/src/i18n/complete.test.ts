import { expect, test } from 'vitest';
import { en } from './en';
import { it as italian } from './it';

/** Every text of a language by its path; a function counts as the text that it gives for plain arguments. */
function texts(value: unknown, path: string, found: Map<string, string>): Map<string, string> {
  if (typeof value === 'string') found.set(path, value);
  else if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    for (const [key, inner] of Object.entries(value)) texts(inner, path ? `${path}.${key}` : key, found);
  }
  return found;
}

test('nothing of any length is the same in both languages: what is, was forgotten', () => {
  const english = texts(en, '', new Map());
  const italiano = texts(italian, '', new Map());
  const same = [...english].filter(([path, text]) => italiano.get(path) === text && /\s/.test(text.trim()));
  expect(same).toEqual([]);
});

test('no text is empty', () => {
  for (const [path, text] of [...texts(en, '', new Map()), ...texts(italian, '', new Map())]) expect(text.trim(), path).not.toBe('');
});
