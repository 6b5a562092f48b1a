/** Lists that come in pages. */

interface Page<T> {
  readonly items: readonly T[];
  readonly next?: string | null;
}

type Ask<T> = (query: { limit: number; cursor?: string }) => Promise<Page<T>>;

/** The largest page that the server gives. */
const PAGE = 500;

/** Everything, page after page; for lists that a site keeps small, such as its types or its resources. */
export async function all<T>(ask: Ask<T>, most = 20_000): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await ask({ limit: PAGE, ...(cursor ? { cursor } : {}) });
    items.push(...page.items);
    cursor = page.next ?? undefined;
  } while (cursor && items.length < most);
  return items;
}
