// The present, for everything that draws it: one timer for the whole page, and none when nobody looks.

import { createSubscriber } from 'svelte/reactivity';

const TICK_MS = 15_000;

const subscribe = createSubscriber((update) => {
  const timer = setInterval(update, TICK_MS);
  return () => clearInterval(timer);
});

export function presentTime(): number {
  subscribe();
  return Date.now();
}
