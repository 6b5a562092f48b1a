import { expect, test } from 'vitest';
import type { ResourceType } from '../api/types';
import { missing, plausible, toSend } from './parameters';

const server: ResourceType = {
  id: 'typ',
  site: { id: 's', name: 's', title: 's' },
  name: 'server',
  title: 'Server',
  colour: '#000000',
  needs_approval: false,
  version: 1,
  parameters: [
    { key: 'image', label: 'Image', required: true, kind: { choice: { options: ['a', 'b'] } } },
    { key: 'count', label: 'Count', required: true, kind: { number: { min: 3 } } },
    { key: 'until', label: 'Until', required: true, kind: { date: {} } },
    { key: 'password', label: 'Password', required: false, kind: { secret: {} } },
  ],
};

test('required questions without an answer are missing', () => {
  expect(missing([server], { server: { image: 'a', count: '' } })).toEqual(new Set(['server.count', 'server.until']));
});

test('a masked secret is not sent back', () => {
  expect(toSend([server], { server: { image: 'b', password: '********' } })).toEqual({ server: { image: 'b' } });
  expect(toSend([server], {})).toEqual({});
});

test('what is missing is filled with something acceptable, and what is given stays', () => {
  expect(plausible([server], { server: { image: 'b' } }, '2026-11-15')).toEqual({
    server: { image: 'b', count: 3, until: '2026-11-15' },
  });
});
