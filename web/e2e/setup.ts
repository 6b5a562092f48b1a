/**
 * The demo's limits, widened: scenes are set far ahead, where nobody is in the way, and every run leaves bookings behind. That
 * limits are kept is what other tests are for.
 */
import type { FullConfig } from '@playwright/test';
import { call } from './people';

export default async function widen(config: FullConfig): Promise<void> {
  const baseURL = config.projects[0]?.use.baseURL ?? '';
  await call('marco', baseURL, 'PUT', '/sites/torino/policy', { policy: { horizon: '4000d' } });
  await call('marco', baseURL, 'PUT', '/sites/torino/policy?type=gpu&role=member', { policy: { length_max: '7d', active_bookings: 5_000 } });
}
