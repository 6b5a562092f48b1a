// Where each row stands, and which of them are near enough to what is seen to be drawn.

export interface RowLayout {
  /** The top of each row, and after the last one the height of them all. */
  readonly tops: Float64Array;
  readonly height: number;
}

export function layOut(heights: readonly number[]): RowLayout {
  const tops = new Float64Array(heights.length + 1);
  heights.forEach((height, i) => (tops[i + 1] = tops[i]! + height));
  return { tops, height: tops[heights.length]! };
}

/** The row at a height; before the first it is the first, after the last the last, and -1 where there are none. */
export function rowAt(layout: RowLayout, y: number): number {
  let low = 0;
  let high = layout.tops.length - 2;
  if (high < 0) return -1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (layout.tops[middle]! <= y) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Rows beyond both edges that are drawn too, so that scrolling does not show empty ones. */
const ROWS_BEYOND = 4;

/** Windows move by so many rows at a time, so that most scrolling changes nothing, and no frame has many rows to draw. */
const ROWS_PER_MOVE = 2;

export interface RowWindow {
  readonly first: number;
  /** Without this one. */
  readonly last: number;
}

export function rowsNear(layout: RowLayout, scrollTop: number, viewHeight: number): RowWindow {
  const count = layout.tops.length - 1;
  if (count === 0) return { first: 0, last: 0 };
  const first = rowAt(layout, scrollTop) - ROWS_BEYOND;
  const last = rowAt(layout, scrollTop + viewHeight) + 1 + ROWS_BEYOND;
  return {
    first: Math.max(0, Math.floor(first / ROWS_PER_MOVE) * ROWS_PER_MOVE),
    last: Math.min(count, Math.ceil(last / ROWS_PER_MOVE) * ROWS_PER_MOVE),
  };
}
