/** What the server says of itself, to whoever has not signed in, too. */
import { api, call } from '../api/client';
import type { components } from '../api/schema';

export type DemoPerson = components['schemas']['DemoPerson'];

class About {
  /** Several people's work may run on a machine that cannot keep them apart. */
  sharesUser = $state(false);
  /** Sessions share Berth's own address, where what runs in one can act as its visitors. */
  sharesOrigin = $state(false);
  /** Whether anybody can sign in; a new installation has no account. */
  isSetUp = $state(true);
  /** The people of a demo, with the password of all of them. */
  demo = $state.raw<readonly DemoPerson[]>([]);

  /** A server that does not answer says so elsewhere; what it said last still holds. */
  async refresh(): Promise<void> {
    try {
      const told = await call(api.GET('/about'));
      this.sharesUser = told.unsafe_shared_user;
      this.sharesOrigin = told.sessions_share_origin ?? false;
      this.isSetUp = told.is_set_up;
      this.demo = told.demo?.people ?? [];
    } catch {
      return;
    }
  }
}

export const about = new About();
