/** Where the server lives: the page's base address, which the server writes into index.html. */
export function basePath(): string {
  return new URL(document.baseURI).pathname;
}

/** The address of the API, below the base path. */
export function apiAddress(): string {
  return `${basePath()}api/v1`;
}

/** A page that the server itself renders: the documentation of a problem, say. */
export function serverPage(path: string): string {
  return `${basePath()}${path.replace(/^\//, '')}`;
}
