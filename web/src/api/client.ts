/**
 * The typed client of Berth's API. Paths, parameters and bodies are checked against docs/openapi.json when this is built.
 *
 * `call` turns an answer into its data or throws a `Failure`, so that no page ever looks at a status code.
 */
import createClient, { type Middleware } from 'openapi-fetch';
import { apiAddress } from './base';
import { Failure } from './problem';
import type { paths, Problem } from './schema';

let csrfToken: string | null = null;

/** The token that proves that a change comes from these pages; it comes with signing in and with `GET /me`. */
export function useCsrfToken(token: string | null): void {
  csrfToken = token;
}

const provesItsOrigin: Middleware = {
  onRequest({ request }) {
    if (csrfToken && request.method !== 'GET') request.headers.set('X-CSRF-Token', csrfToken);
    return request;
  },
};

export const api = createClient<paths>({
  baseUrl: apiAddress(),
  // Written `type=a&type=b`, which is how the server reads lists.
  querySerializer: { array: { style: 'form', explode: true } },
});
api.use(provesItsOrigin);

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

type Unauthorised = () => void;
let whenSignedOut: Unauthorised = () => undefined;

/** What to do when an answer says that nobody is signed in any more. */
export function onSignedOut(act: Unauthorised): void {
  whenSignedOut = act;
}

/** The data of an answer, or a thrown `Failure`. */
export async function call<T>(asked: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await asked;
  } catch (thrown) {
    if (thrown instanceof DOMException && thrown.name === 'AbortError') throw thrown;
    // What `fetch` throws says nothing that helps a person; not even whether a body failed to parse.
    throw Failure.local(thrown instanceof SyntaxError ? 'client.unreadable' : 'client.offline');
  }
  if (answer.response.ok) return answer.data as T;
  const failure = isProblem(answer.error)
    ? Failure.of(answer.error)
    : Failure.local(answer.response.status >= 502 ? 'client.offline' : 'client.unreadable', answer.response.status);
  if (failure.needsSignIn) whenSignedOut();
  throw failure;
}

function isProblem(body: unknown): body is Problem {
  return typeof body === 'object' && body !== null && 'code' in body && 'status' in body;
}

/** The header that binds a change to the version that a person saw. */
export function ifMatch(version: number): { readonly 'If-Match': string } {
  return { 'If-Match': `"${version}"` };
}
