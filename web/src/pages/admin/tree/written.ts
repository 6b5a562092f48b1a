/** A resource as it stands in a form: everything a text, until it is sent. */
import type { Resource, ResourcePatch } from '../../../api/types';
import { readAttributes, writeAttributes } from './attributes';

export interface Written {
  name: string;
  title: string;
  attributes: string;
  amount: number | null;
  unit: string;
  location: string;
  contact: string;
  monitoring: string;
  provisioning: string;
}

export function written(resource?: Resource): Written {
  const facts = resource?.facts ?? {};
  return {
    name: resource?.name ?? '',
    title: resource?.title ?? '',
    attributes: writeAttributes(resource?.attributes ?? {}),
    amount: resource?.capacity?.amount ?? null,
    unit: resource?.capacity?.unit ?? '',
    location: facts.location ?? '',
    contact: facts.contact ?? '',
    monitoring: facts.monitoring_url ?? '',
    provisioning: facts.provisioning_address ?? '',
  };
}

/** What to send; null while the attributes cannot be read. */
export function toSend(form: Written): (ResourcePatch & { name: string }) | null {
  const read = readAttributes(form.attributes);
  if ('wrong' in read) return null;
  const orNull = (text: string) => text.trim() || null;
  return {
    name: form.name.trim(),
    title: orNull(form.title),
    attributes: read.attributes,
    capacity: form.amount ? { amount: form.amount, unit: form.unit.trim() || 'units' } : null,
    facts: {
      location: orNull(form.location),
      contact: orNull(form.contact),
      monitoring_url: orNull(form.monitoring),
      provisioning_address: orNull(form.provisioning),
    },
  };
}
