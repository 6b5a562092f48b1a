// Snapping to steps on the clock: policies count steps from midnight of the site's own clock.

import { DAY, HOUR, MINUTE } from './span';
import { fromLocal, toLocal } from './zone';

export type Way = 'down' | 'near' | 'up';

const ROUND: Record<Way, (value: number) => number> = { down: Math.floor, near: Math.round, up: Math.ceil };

function timeOfDay(local: number): number {
  return local - Math.floor(local / DAY) * DAY;
}

/** The nearest time, the last one before, or the next one, at which the clock shows a multiple of `step` after midnight. */
export function snap(instant: number, step: number, zone: string, way: Way = 'near'): number {
  const local = toLocal(instant, zone);
  const passed = timeOfDay(local);
  const wanted = Math.min(ROUND[way](passed / step) * step, DAY);
  // Within one offset that is a plain shift, and stays right in the hour that the clock shows twice.
  const shifted = instant + (wanted - passed);
  const shownThere = toLocal(shifted, zone);
  const isOnStep = timeOfDay(shownThere) % step === 0;
  if (isOnStep) return shifted;
  return fromLocal(local - passed + wanted, zone);
}

/** From fine to coarse; what the pointer can tell apart decides which one is used. */
export const STEPS: readonly number[] = [
  5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY,
];

/** A pointer can be placed this exactly without effort. */
const STEP_PX_MIN = 5;

/** The step for dragging at a scale: fine enough to choose, never finer than the pointer or the policy. */
export function stepFor(msPerPx: number, policyStep: number | null = null): number {
  const unit = policyStep ?? STEPS[0]!;
  const allowed = STEPS.filter((step) => step % unit === 0);
  return allowed.find((step) => step / msPerPx >= STEP_PX_MIN) ?? allowed.at(-1) ?? unit;
}
