// The steps that a drag keeps to, on a zone's clock.

import { snap } from '../time/snap';
import { fromLocal, toLocal } from '../time/zone';

export interface Steps {
  readonly down: (time: number) => number;
  readonly near: (time: number) => number;
  readonly up: (time: number) => number;
  /** What `time` is in its own step, in another one: 09:10 of one day on another day, also where clocks change between. */
  readonly carried: (time: number, toStep: number) => number;
  readonly length: number;
  /** The first moment that can still be booked: a booking of the step that holds it begins there. */
  readonly earliest: number;
  /** The length of a booking that begins with a click. */
  readonly usualLength: number;
}

export interface StepTerms {
  readonly length: number;
  readonly zone: string;
  readonly earliest: number;
  readonly usualLength: number;
}

export function makeSteps({ length, zone, earliest, usualLength }: StepTerms): Steps {
  const down = (time: number) => snap(time, length, zone, 'down');
  return {
    down,
    near: (time) => snap(time, length, zone, 'near'),
    up: (time) => snap(time, length, zone, 'up'),
    carried(time, toStep) {
      const passed = toLocal(time, zone) - toLocal(down(time), zone);
      return passed === 0 ? toStep : fromLocal(toLocal(toStep, zone) + passed, zone);
    },
    length,
    earliest,
    usualLength: Math.max(usualLength, length),
  };
}

export function nextStep(time: number, steps: Steps): number {
  return steps.up(time + 1);
}

export function previousStep(time: number, steps: Steps): number {
  return steps.down(time - 1);
}

/** Where a booking begins that is begun at a time: at the step's start, or now if the step has begun. */
export function stepStart(time: number, steps: Steps): number {
  const start = steps.down(time);
  return start < steps.earliest && steps.earliest < nextStep(start, steps) ? steps.earliest : start;
}
