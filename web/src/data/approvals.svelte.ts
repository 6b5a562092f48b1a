/** How many bookings wait for this person's word; the header, the status line and the approvals page share it. */
import { api, call } from '../api/client';
import { asFailure } from '../api/problem';
import type { Reservation } from '../api/types';

class Approvals {
  list = $state.raw<readonly Reservation[]>([]);

  get count(): number {
    return this.list.length;
  }

  async refresh(): Promise<void> {
    try {
      this.list = (await call(api.GET('/me/approvals'))).items;
    } catch (thrown) {
      // The number is a courtesy; the page itself says why it cannot be read.
      asFailure(thrown);
    }
  }
}

export const approvals = new Approvals();
