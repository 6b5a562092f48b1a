/** "Any so many of a kind, for so long": what people fill in, in the address bar and for the API. A wish is a link, too. */
import type { Resource, ResourceType, Wish } from '../api/types';
import { parseLength, toPeriod, writeLength } from '../i18n/length';
import { HOUR } from '../time/span';

/** So many for so long; in milliseconds, null while it is being written. */
export interface Variant {
  count: number;
  length: number | null;
}

export interface Wishing {
  what: string;
  /** Any one of these will do, the most welcome first. */
  variants: Variant[];
  earliest: number | null;
  before: number | null;
  /** Conditions on attributes, one each line. */
  where: string;
  /** How much of each, where they are divisible. */
  amount: number | null;
}

export function emptyWish(): Wishing {
  return { what: '', variants: [{ count: 1, length: 2 * HOUR }], earliest: null, before: null, where: '', amount: null };
}

export function readWish(query: URLSearchParams): Wishing {
  const moment = (name: string) => {
    const value = Date.parse(query.get(name) ?? '');
    return Number.isNaN(value) ? null : value;
  };
  const variant = (count: string | null, length: string | null): Variant => ({ count: Math.max(1, Number(count ?? 1) || 1), length: parseLength(length ?? '') });
  const others = query.getAll('or').map((text) => variant(text.split('x')[0] ?? null, text.split('x')[1] ?? null));
  return {
    what: query.get('what') ?? '',
    variants: [variant(query.get('count'), query.get('for') ?? '2h'), ...others.filter(({ length }) => length !== null)],
    earliest: moment('earliest'),
    before: moment('before'),
    where: query.getAll('having').join('\n'),
    amount: Number(query.get('amount')) || null,
  };
}

export function writeWish(wish: Wishing): Record<string, string | string[] | null> {
  const moment = (value: number | null) => (value === null ? null : new Date(value).toISOString());
  const length = (variant: Variant | undefined) => (variant?.length ? writeLength(variant.length) : null);
  const [first, ...others] = wish.variants;
  return {
    what: wish.what.trim(),
    count: first && first.count > 1 ? String(first.count) : null,
    for: length(first),
    or: others.flatMap((variant) => (variant.length ? [`${variant.count}x${length(variant)}`] : [])),
    earliest: moment(wish.earliest),
    before: moment(wish.before),
    having: conditions(wish.where),
    amount: wish.amount ? String(wish.amount) : null,
  };
}

/** The wish for the API; null while it is not whole. */
export function wishOf(wish: Wishing): Wish | null {
  const variants = wish.variants.flatMap(({ count, length }) => (length === null || !count ? [] : [{ count, for: toPeriod(length) }]));
  if (wish.what.trim() === '' || variants.length < wish.variants.length) return null;
  const where = conditions(wish.where);
  return {
    what: wish.what.trim(),
    variants,
    ...(wish.earliest === null ? {} : { earliest: new Date(wish.earliest).toISOString() }),
    ...(wish.before === null ? {} : { before: new Date(wish.before).toISOString() }),
    ...(where.length > 0 ? { where } : {}),
    ...(wish.amount ? { amount: wish.amount } : {}),
  };
}

/** The words that mean something: types, and what attributes say. */
export function knownWords(types: readonly ResourceType[], resources: readonly Resource[]): string[] {
  const said = resources.flatMap(({ attributes }) => Object.values(attributes).filter((value) => typeof value === 'string'));
  return [...new Set([...types.map((type) => type.name), ...said])];
}

function conditions(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.replace(/\s+/g, ''))
    .filter((line) => line !== '');
}
