/**
 * What went wrong, as one type: the server's problem documents, and what can go wrong before one arrives.
 *
 * Pages catch nothing else. A `Failure` always has a stable code, so that a page can react to it, and words for a person.
 */
import type { FieldError, Problem } from './schema';

/** The codes that only a browser can know of. */
export type LocalCode = 'client.offline' | 'client.unreadable';

export class Failure extends Error {
  override readonly name = 'Failure';

  constructor(
    readonly code: string,
    readonly status: number,
    /** The server's own document; absent when it never spoke. */
    readonly problem?: Problem,
  ) {
    super(problem?.detail ?? code);
  }

  static of(problem: Problem): Failure {
    return new Failure(problem.code, problem.status, problem);
  }

  /** The server could not be reached, or a proxy answered in its stead. */
  static local(code: LocalCode, status = 0): Failure {
    return new Failure(code, status);
  }

  get isOffline(): boolean {
    return this.code === 'client.offline';
  }

  get needsSignIn(): boolean {
    return this.code === 'auth.sign_in_required';
  }

  /** Somebody else changed it in the meantime. */
  get isStale(): boolean {
    return this.code === 'request.version_mismatch';
  }

  get isForbidden(): boolean {
    return this.status === 403;
  }

  get isMissing(): boolean {
    return this.status === 404;
  }

  /** What is wrong with one field of what was sent, if that field is named. */
  fieldMessage(field: string): string | undefined {
    return this.fields.find((error) => error.field === field)?.message;
  }

  get fields(): readonly FieldError[] {
    return this.problem?.errors ?? [];
  }
}

/** Anything that was thrown, as a failure; what is no failure is a defect of these pages and stays one. */
export function asFailure(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown;
  // `fetch` says "TypeError" when nobody answers, whatever the reason.
  if (thrown instanceof TypeError) return Failure.local('client.offline');
  throw thrown;
}
