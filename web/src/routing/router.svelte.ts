/**
 * The address bar: the only place that knows where we are.
 *
 * Every view is a link. Filters live in the query, so that what one person sees can be sent to another; a change of a filter
 * replaces the address, and going to another page adds one to the history.
 */
import { tick } from 'svelte';
import { basePath } from '../api/base';
import { match, type Params } from './match';
import { routes, type Route } from './routes';

interface Address {
  readonly path: string;
  readonly query: URLSearchParams;
}

export type QueryPatch = Readonly<Record<string, string | readonly string[] | null | undefined>>;

class Router {
  #base = basePath();
  address = $state.raw<Address>(this.#read());
  found = $derived(find(this.address.path));

  /** The first value of a filter, or `otherwise`. */
  query(name: string, otherwise = ''): string {
    return this.address.query.get(name) ?? otherwise;
  }

  queryAll(name: string): string[] {
    return this.address.query.getAll(name);
  }

  /** The address of a page, for `href`: below the base path. */
  href(path: string, query?: QueryPatch): string {
    const text = query ? patched(new URLSearchParams(), query).toString() : '';
    return this.#base + path.replace(/^\//, '') + (text ? `?${text}` : '');
  }

  go(path: string, query?: QueryPatch): void {
    this.goHref(this.href(path, query));
  }

  /** Goes to an address that `href` made. */
  goHref(href: string): void {
    this.#set(href, 'push');
    void tick().then(() => scrollTo(0, 0));
  }

  replace(path: string, query?: QueryPatch): void {
    this.replaceHref(this.href(path, query));
  }

  replaceHref(href: string): void {
    this.#set(href, 'replace');
  }

  /** Changes filters and leaves the others; null and empty texts take a filter away. */
  setQuery(patch: QueryPatch, how: 'push' | 'replace' = 'replace'): void {
    const query = patched(new URLSearchParams(this.address.query), patch).toString();
    this.#set(this.href(this.address.path) + (query ? `?${query}` : ''), how);
  }

  /** Follows the browser's history and every plain click on a link of ours. */
  start(): void {
    addEventListener('popstate', () => (this.address = this.#read()));
    addEventListener('click', (event) => {
      const path = ownLink(event, this.#base);
      if (path === null) return;
      event.preventDefault();
      this.goHref(path);
    });
  }

  #set(address: string, how: 'push' | 'replace'): void {
    if (address === location.pathname + location.search && how === 'push') return;
    if (how === 'push') history.pushState(null, '', address);
    else history.replaceState(null, '', address);
    this.address = this.#read();
  }

  #read(): Address {
    const inside = location.pathname.startsWith(this.#base);
    const path = inside ? `/${location.pathname.slice(this.#base.length)}` : location.pathname;
    return { path, query: new URLSearchParams(location.search) };
  }
}

function find(path: string): { route: Route; params: Params } | null {
  for (const route of routes) {
    const params = match(route.path, path);
    if (params) return { route, params };
  }
  return null;
}

function patched(query: URLSearchParams, patch: QueryPatch): URLSearchParams {
  for (const [name, value] of Object.entries(patch)) {
    query.delete(name);
    for (const one of typeof value === 'string' ? [value] : (value ?? [])) {
      if (one !== '') query.append(name, one);
    }
  }
  return query;
}

/** Pages that the server renders itself; a click on a link to one leaves the app. */
const SERVER_PAGES = ['docs', 'api/', 'feeds/', 'open/'];

/** Whether the server answers for a path, and not these pages. */
export function isServerPage(path: string): boolean {
  return SERVER_PAGES.some((page) => path.replace(/^\//, '').startsWith(page));
}

function ownLink(event: MouseEvent, base: string): string | null {
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!isPlain || event.defaultPrevented) return null;
  const link = (event.target as Element | null)?.closest('a');
  if (!link?.href || link.target || link.hasAttribute('download')) return null;
  const url = new URL(link.href);
  if (url.origin !== location.origin || !url.pathname.startsWith(base) || url.hash) return null;
  const path = url.pathname.slice(base.length);
  return isServerPage(path) ? null : url.pathname + url.search;
}

export const router = new Router();
