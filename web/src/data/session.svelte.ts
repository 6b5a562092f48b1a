/** Who is signed in, and what they may do where. */
import { api, call, onSignedOut, useCsrfToken } from '../api/client';
import { asFailure, type Failure } from '../api/problem';
import type { Me, Person } from '../api/types';
import { live } from '../live/stream.svelte';

export type SessionState = 'unknown' | 'out' | 'in' | 'unreachable';

class Session {
  state = $state<SessionState>('unknown');
  me = $state.raw<Me | null>(null);
  /** Why it is not known who is signed in. */
  failure = $state.raw<Failure | null>(null);

  get person(): Person | null {
    return this.me?.person ?? null;
  }

  get isGlobalAdmin(): boolean {
    return this.person?.global_admin ?? false;
  }

  isMember(site: string): boolean {
    return this.me?.memberships.some((membership) => membership.site.name === site) ?? false;
  }

  /** Whether they asked to join it and were not answered yet. */
  hasAsked(site: string): boolean {
    return this.me?.asked.some((asked) => asked.site.name === site) ?? false;
  }

  isAdmin(site: string): boolean {
    return this.isGlobalAdmin || this.#roleIn(site) === 'site_admin';
  }

  get administersAnything(): boolean {
    return this.isGlobalAdmin || (this.me?.memberships.some((membership) => membership.role === 'site_admin') ?? false);
  }

  async refresh(): Promise<void> {
    try {
      this.#begin(await call(api.GET('/me')));
    } catch (thrown) {
      const failure = asFailure(thrown);
      if (failure.needsSignIn) this.#end();
      else if (this.state === 'unknown') {
        this.failure = failure;
        this.state = 'unreachable';
      }
    }
  }

  async signIn(login: string, password: string): Promise<void> {
    const signedIn = await call(api.POST('/sign-in', { body: { login, password } }));
    useCsrfToken(signedIn.csrf_token);
    await this.refresh();
  }

  async signOut(): Promise<void> {
    await call(api.POST('/sign-out'));
    this.#end();
  }

  /** The server says that nobody is signed in any more. */
  expired(): void {
    if (this.state === 'in') this.#end();
  }

  #begin(me: Me): void {
    useCsrfToken(me.csrf_token ?? null);
    this.me = me;
    this.state = 'in';
    live.start();
  }

  #end(): void {
    useCsrfToken(null);
    this.me = null;
    this.state = 'out';
    live.stop();
  }

  #roleIn(site: string): string | undefined {
    return this.me?.memberships.find((membership) => membership.site.name === site)?.role;
  }
}

export const session = new Session();
onSignedOut(() => session.expired());
live.whenRefused(() => void session.refresh());
