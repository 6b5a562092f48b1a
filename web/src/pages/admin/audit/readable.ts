/** Values of the log in words: names for ids, times by the clock, states as pages call them. */
import type { Formats } from '../../../i18n/format';
import type { Messages } from '../../../i18n/en';
import type { FieldChange } from './differences';
import type { Names } from './search';

const ID = /\b[a-z]{3}_[0-9a-z]{26}\b/g;
const MOMENT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/;

export function readable(change: FieldChange, names: Names, t: Messages, format: Formats): FieldChange & { readonly label: string | undefined } {
  const { field } = change;
  const last = field.split('.').at(-1) ?? field;
  const words = (text: string): string => {
    if (MOMENT.test(text)) return format.full(text);
    if (last === 'state' && text in t.state) return t.state[text as keyof typeof t.state];
    if (text in t.status) return t.status[text as keyof typeof t.status];
    return text.replace(ID, (id) => names.get(id) ?? id);
  };
  return { field, label: (t.audit.fields as Readonly<Record<string, string>>)[field] ?? undefined, before: words(change.before), after: words(change.after) };
}
