import { expect, test } from 'vitest';
import { toCsv } from './csv';

test('commas, quotes and lines stay inside their field', () => {
  expect(toCsv(['a', 'b'], [['x, y', 'say "no"'], ['two\nlines', 1.5]])).toBe('a,b\r\n"x, y","say ""no"""\r\n"two\nlines",1.5\r\n');
});

test('what is not known is empty', () => {
  expect(toCsv(['a'], [[null]])).toBe('a\r\n\r\n');
});

test('a text is never a formula, a negative number stays one', () => {
  expect(toCsv(['a'], [['=1+1'], ['-cmd'], [-3]])).toBe("a\r\n'=1+1\r\n'-cmd\r\n-3\r\n");
});
