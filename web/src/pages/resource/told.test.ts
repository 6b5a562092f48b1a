import { expect, test } from 'vitest';
import type { CalendarEntry } from '../../api/types';
import { toldOf } from './told';

const entry = (owner: string | null, reservation: string | null, resource = 'gpu-01') =>
  ({
    claim: `${reservation} ${resource}`,
    resource: { id: resource, name: resource, type: 'gpu' },
    ...(owner ? { owner: { id: owner, login: owner, display_name: owner } } : {}),
    ...(reservation ? { reservation } : {}),
  }) as unknown as CalendarEntry;

test('everybody is told once, whoever has most first', () => {
  const told = toldOf([entry('ada', 'r1'), entry('bo', 'r2'), entry('bo', 'r3'), entry('ada', 'r1', 'gpu-02')]);
  expect(told.map(({ person, bookings }) => [person.id, bookings.length])).toEqual([
    ['bo', 2],
    ['ada', 1],
  ]);
});

test('maintenance has nobody to tell', () => {
  expect(toldOf([entry(null, null)])).toEqual([]);
});
