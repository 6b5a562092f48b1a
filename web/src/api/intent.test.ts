import { expect, test } from 'vitest';
import { Intent } from './intent';

const key = (intent: Intent, content: unknown) => intent.keyFor(content)['Idempotency-Key'];

test('the same wish keeps its key, and another wish gets another', () => {
  const intent = new Intent();
  const first = key(intent, { title: 'a' });
  expect(key(intent, { title: 'a' })).toBe(first);
  const second = key(intent, { title: 'b' });
  expect(second).not.toBe(first);
  expect(key(intent, { title: 'a' })).not.toBe(first);
});

test('a granted wish can be wished again', () => {
  const intent = new Intent();
  const first = key(intent, 1);
  intent.fulfilled();
  expect(key(intent, 1)).not.toBe(first);
});
