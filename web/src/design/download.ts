/** Files that a page makes itself. */
import { toCsv, type Cell } from './csv';

export function download(name: string, text: string, type: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

export function downloadJson(name: string, value: unknown): void {
  download(`${name}.json`, JSON.stringify(value, null, 2), 'application/json');
}

/** With the mark that tells a spreadsheet that it reads UTF-8: names have accents. */
export function downloadCsv(name: string, columns: readonly string[], rows: readonly (readonly Cell[])[]): void {
  download(`${name}.csv`, `\ufeff${toCsv(columns, rows)}`, 'text/csv;charset=utf-8');
}
