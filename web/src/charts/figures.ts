/** The numbers behind a chart: one table for the page, for paper and for a file. */
import type { Cell } from '../design/csv';

export interface Column {
  readonly label: string;
  /** How the page writes a number of this column; a file has it as it is. Without it the column holds texts. */
  readonly show?: (value: number) => string;
}

export interface Figures {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
}

/** The largest value, and never nothing: a chart without any use still has an axis. */
export function most(values: readonly (number | null)[], least: number): number {
  return Math.max(least, ...values.map((value) => value ?? 0));
}

/** A round number not below `value`, for the top of an axis: 1, 2, 2.5 or 5 times a power of ten. */
export function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= value * (1 - 1e-9)) ?? 10;
  return step * power;
}

/** Every how many labels one is written, so that none touches the next. */
export function labelStep(count: number, width: number, labelWidth: number): number {
  return Math.max(1, Math.ceil((count * labelWidth) / Math.max(1, width)));
}
