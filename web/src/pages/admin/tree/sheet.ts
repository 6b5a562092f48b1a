/** The tree as a sheet: a row for each resource, with what it is part of. */
import type { Resource } from '../../../api/types';
import type { Cell } from '../../../design/csv';
import { writeAttributes } from './attributes';

export const COLUMNS = ['name', 'title', 'type', 'parent', 'status', 'effective_status', 'status_reason', 'amount', 'unit', 'location', 'contact', 'attributes'];

export function row({ name, title, type, parent, status, effective_status, status_reason, capacity, facts, attributes }: Resource): Cell[] {
  return [
    name,
    title ?? null,
    type.name,
    parent?.name ?? null,
    status,
    effective_status,
    status_reason ?? null,
    capacity?.amount ?? null,
    capacity?.unit ?? null,
    facts.location ?? null,
    facts.contact ?? null,
    writeAttributes(attributes).replaceAll('\n', '; '),
  ];
}
