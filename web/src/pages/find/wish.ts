/** What "find me" asks, in the address bar and for the API: a search is a link, too. */
import type { WhenRequest } from '../../api/types';
import { parseLength, toPeriod } from '../../i18n/length';

export interface Search {
  readonly what: string;
  readonly count: number;
  readonly length: string;
  readonly earliest: number | null;
  readonly before: number | null;
  readonly where: string;
  readonly site: string;
}

export function readSearch(query: URLSearchParams): Search {
  const moment = (name: string) => {
    const value = Date.parse(query.get(name) ?? '');
    return Number.isNaN(value) ? null : value;
  };
  return {
    what: query.get('what') ?? '',
    count: Math.max(1, Number(query.get('count') ?? 1) || 1),
    length: query.get('for') ?? '2h',
    earliest: moment('earliest'),
    before: moment('before'),
    where: query.getAll('where').join('\n'),
    site: query.get('in') ?? '',
  };
}

export function writeSearch(search: Search): Record<string, string | string[] | null> {
  const moment = (value: number | null) => (value === null ? null : new Date(value).toISOString());
  return {
    what: search.what,
    count: search.count > 1 ? String(search.count) : null,
    for: search.length,
    earliest: moment(search.earliest),
    before: moment(search.before),
    where: conditions(search.where),
    in: search.site || null,
  };
}

/** The question for the API; null while it is not whole. */
export function requestOf(search: Search): WhenRequest | null {
  const length = parseLength(search.length);
  if (search.what.trim() === '' || length === null) return null;
  const where = conditions(search.where);
  return {
    limit: 6,
    ...(search.site ? { sites: [search.site] } : {}),
    wish: {
      what: search.what.trim(),
      variants: [{ count: search.count, for: toPeriod(length) }],
      ...(search.earliest === null ? {} : { earliest: new Date(search.earliest).toISOString() }),
      ...(search.before === null ? {} : { before: new Date(search.before).toISOString() }),
      ...(where.length > 0 ? { where } : {}),
    },
  };
}

function conditions(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.replace(/\s+/g, ''))
    .filter((line) => line !== '');
}
