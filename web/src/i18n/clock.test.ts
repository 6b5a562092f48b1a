import { expect, test } from 'vitest';
import { parseClock, writeClock } from './clock';

test('what people type is read', () => {
  for (const [text, minutes] of [['9', 540], ['9:30', 570], ['09.30', 570], ['0930', 570], ['930', 570], ['9h30', 570], ['23:59', 1439], ['0', 0]] as const) {
    expect(parseClock(text), text).toBe(minutes);
  }
  for (const text of ['', '24', '9:60', '9:3', 'x', '12345']) expect(parseClock(text), text).toBeNull();
});

test('and written back in full', () => {
  expect(writeClock(570)).toBe('09:30');
});
