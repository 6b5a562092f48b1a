import { expect, test } from 'vitest';
import { FrameReader } from './frames';

const text = 'id: 7\nretry: 2000\n\n:\n\nid: 8\nevent: reservation.created\ndata: {"a":\ndata: 1}\n\n';
const frames = [
  { id: '7', event: 'message', data: '' },
  { id: '8', event: 'reservation.created', data: '{"a":\n1}' },
];

test('frames are read whole', () => {
  expect(new FrameReader().push(text)).toEqual(frames);
});

test('and in the smallest pieces, with either line end', () => {
  for (const variant of [text, text.replaceAll('\n', '\r\n')]) {
    const reader = new FrameReader();
    expect([...variant].flatMap((piece) => reader.push(piece))).toEqual(frames);
  }
});

test('a sign of life is no frame', () => {
  expect(new FrameReader().push(':\n\n:\n\n')).toEqual([]);
});
