/** A notification as a sentence in the reader's language, on the reader's clock. */
import type { Told } from '../data/told';
import type { Messages } from './en';
import type { Formats } from './format';

export function sentenceOf(told: Told, t: Messages, format: Formats): string {
  return t.notices.told[told.kind]({
    about: told.about,
    by: told.by,
    site: told.site,
    status: told.status ? t.status[told.status] : '',
    when: told.moment ? format.dayAndTime(told.moment) : '',
    count: told.count,
  });
}
