// What each key asks for. Letters work only while the timeline or a calendar has the focus.

export type Command =
  | { readonly do: 'go'; readonly x: -1 | 0 | 1; readonly y: -1 | 0 | 1 }
  | { readonly do: 'goToItem'; readonly to: -1 | 1 }
  | { readonly do: 'page'; readonly by: -1 | 1 }
  | { readonly do: 'pan'; readonly by: -1 | 1 }
  | { readonly do: 'zoom'; readonly by: -1 | 1 }
  | { readonly do: 'nudge'; readonly x: -1 | 0 | 1; readonly y: -1 | 0 | 1; readonly edge: 'start' | 'end' }
  | { readonly do: 'toNames' | 'toNow' | 'open' | 'book' | 'move' | 'extend' | 'finish' | 'giveUp' };

export interface Stroke {
  readonly key: string;
  readonly shiftKey: boolean;
  readonly ctrlKey: boolean;
  readonly altKey: boolean;
  readonly metaKey: boolean;
}

const ARROWS: Record<string, readonly [-1 | 0 | 1, -1 | 0 | 1]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

const PLAIN: Record<string, Command> = {
  Home: { do: 'toNames' },
  Escape: { do: 'toNames' },
  PageUp: { do: 'page', by: -1 },
  PageDown: { do: 'page', by: 1 },
  Enter: { do: 'open' },
  ' ': { do: 'open' },
  b: { do: 'book' },
  m: { do: 'move' },
  e: { do: 'extend' },
  t: { do: 'toNow' },
  '+': { do: 'zoom', by: 1 },
  '=': { do: 'zoom', by: 1 },
  '-': { do: 'zoom', by: -1 },
};

const WHILE_DRAGGING: Record<string, Command> = {
  Enter: { do: 'finish' },
  ' ': { do: 'finish' },
  Escape: { do: 'giveUp' },
};

export function commandOf(stroke: Stroke, isDragging: boolean): Command | null {
  const { key, shiftKey, ctrlKey, altKey, metaKey } = stroke;
  // What the browser or the system means by these is not ours to take.
  if (metaKey || altKey) return null;
  const arrow = ARROWS[key];
  if (isDragging) {
    if (arrow) return { do: 'nudge', x: arrow[0], y: arrow[1], edge: shiftKey ? 'start' : 'end' };
    return WHILE_DRAGGING[key] ?? null;
  }
  if (arrow) {
    const [x, y] = arrow;
    if (ctrlKey) return { do: 'goToItem', to: (x || y) as -1 | 1 };
    return shiftKey && x !== 0 ? { do: 'pan', by: x } : { do: 'go', x, y };
  }
  return ctrlKey ? null : (PLAIN[key.length === 1 ? key.toLowerCase() : key] ?? null);
}
