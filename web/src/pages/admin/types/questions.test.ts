import { expect, test } from 'vitest';
import type { Parameter } from '../../../api/types';
import { fromParameter, toParameter } from './questions';

const parameters: Parameter[] = [
  { key: 'image', label: 'Image', required: true, kind: { choice: { options: ['a', 'b'] } } },
  { key: 'key', label: 'Key', help: 'one line', required: false, kind: { text: { max_length: 80 } } },
  { key: 'count', label: 'Count', required: false, kind: { number: { integer: true, min: 1, max: 0 } } },
  { key: 'keep', label: 'Keep', required: false, kind: { boolean: {} } },
  { key: 'pass', label: 'Pass', required: false, kind: { secret: {} } },
];

test('a form that is opened and saved is the same', () => {
  expect(parameters.map(fromParameter).map(toParameter)).toEqual(parameters);
});

test('empty lines are no choices', () => {
  const question = { ...fromParameter(parameters[0]!), options: ' a \n\n' };
  expect(toParameter(question).kind).toEqual({ choice: { options: ['a'] } });
});
