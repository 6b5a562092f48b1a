/** What differs between two states of a thing, field by field, in words short enough to read. */

export interface FieldChange {
  readonly field: string;
  readonly before: string;
  readonly after: string;
}

/** Fields that change with every change and say nothing of it, or repeat what stands above. */
const NOISE = new Set(['version', 'updated_at', 'created_at', 'id']);
const LONG = 160;

export function differences(before: unknown, after: unknown): FieldChange[] {
  const old = flat(before);
  const now = flat(after);
  const fields = new Set([...old.keys(), ...now.keys()]);
  return [...fields]
    .filter((field) => !NOISE.has(field) && old.get(field) !== now.get(field))
    .sort()
    .map((field) => ({ field, before: old.get(field) ?? '', after: now.get(field) ?? '' }));
}

function flat(value: unknown, prefix = '', found = new Map<string, string>()): Map<string, string> {
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object')) found.set(prefix, value.join(', '));
  else if (isTaken(value)) found.set(prefix, value.map(takenWords).join(', '));
  else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) flat(inner, prefix ? `${prefix}.${key}` : key, found);
  } else if (value !== null && value !== undefined) found.set(prefix || 'value', short(String(value)));
  return found;
}

interface Taken {
  readonly resource: string;
  readonly take?: 'exclusive' | { readonly amount: number };
}

/** What a booking takes: one line says it better than three for each resource. */
function isTaken(value: unknown): value is readonly Taken[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'object' && item !== null && typeof item.resource === 'string');
}

function takenWords({ resource, take }: Taken): string {
  return typeof take === 'object' ? `${resource} (${take.amount})` : resource;
}

function short(text: string): string {
  return text.length > LONG ? `${text.slice(0, LONG)}…` : text;
}
