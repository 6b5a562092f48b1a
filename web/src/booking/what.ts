/** What a booking has, or waits for, in a few words. */
import type { Reservation } from '../api/types';
import type { Formats } from '../i18n/format';

export function whatOf(booking: Reservation, format: Formats): string {
  const has = booking.resources.map(({ resource }) => resource.name);
  const named = has.length > 0 ? has : (booking.waits_for ?? []).map(({ name }) => name);
  if (named.length > 0) return format.list(named);
  const wish = booking.terms.wait?.wish;
  if (!wish || !('any' in wish)) return '';
  const { variants, what } = wish.any;
  return variants.map(({ count, length_s }) => `${count} × ${what.what}, ${format.length(length_s * 1_000)}`).join(' / ');
}
