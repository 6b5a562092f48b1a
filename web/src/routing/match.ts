/** Paths with named parts, such as `/sites/:site/resources/:resource`. */
export type Params = Readonly<Record<string, string>>;

/** What the named parts stand for in `path`, or null where the path is another one. */
export function match(pattern: string, path: string): Params | null {
  const wanted = split(pattern);
  const given = split(path);
  if (wanted.length !== given.length) return null;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const found = given[index] ?? '';
    if (part.startsWith(':')) params[part.slice(1)] = decode(found);
    else if (part !== found) return null;
  }
  return params;
}

/** The path with its parts filled in. */
export function fill(pattern: string, params: Params): string {
  const parts = split(pattern).map((part) => {
    if (!part.startsWith(':')) return part;
    const value = params[part.slice(1)];
    if (value === undefined) throw new Error(`${pattern} needs ${part}`);
    return encodeURIComponent(value);
  });
  return `/${parts.join('/')}`;
}

function split(path: string): string[] {
  return path.split('/').filter((part) => part !== '');
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
