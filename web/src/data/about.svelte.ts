/** What the server says of itself, to whoever has not signed in, too. */
import { api, call } from '../api/client';

class About {
  /** Several people's work may run on a machine that cannot keep them apart. */
  sharesUser = $state(false);

  /** A server that does not answer says so elsewhere; what it said last still holds. */
  async refresh(): Promise<void> {
    try {
      this.sharesUser = (await call(api.GET('/about'))).unsafe_shared_user;
    } catch {
      return;
    }
  }
}

export const about = new About();
