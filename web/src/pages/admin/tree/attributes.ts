/** Attributes as a person writes them: a line each, `gpu_model = A100`. */
import type { AttributeSet } from '../../../api/types';

export function writeAttributes(attributes: AttributeSet): string {
  return Object.entries(attributes)
    .map(([key, value]) => `${key} = ${value}`)
    .join('\n');
}

/** The attributes, or the first line that is not one. Numbers and yes/no are read as such, as the file format does. */
export function readAttributes(text: string): { attributes: AttributeSet } | { wrong: string } {
  const attributes: AttributeSet = {};
  for (const line of text.split('\n').map((one) => one.trim())) {
    if (line === '') continue;
    const found = /^([a-z0-9][a-z0-9_.-]*)\s*=\s*(.+)$/.exec(line);
    if (!found) return { wrong: line };
    attributes[found[1]!] = readValue(found[2]!);
  }
  return { attributes };
}

function readValue(text: string): boolean | number | string {
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}
