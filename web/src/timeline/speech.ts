// What is said of items, drafts and verdicts, on screen and to screen readers, from the same words.

import { formatLength, type TimeFormat } from '../time/format';
import { lengthOf, type Span } from '../time/span';
import { fullestOf } from './bands';
import type { Draft, Item, Labels, Row, Verdict } from './types';

export interface Speech {
  /** The title, or what kind of thing it is. */
  what(item: Item): string;
  /** Everything about an item in one line. */
  item(item: Item, row: Row | null): string;
  /** Of several claims that are drawn as one: how they are counted, and how much they take; else nothing. */
  filled(item: Item): string | null;
  /** What is left to say of an item whose title, owner and resources are written on it. */
  rest(item: Item): string;
  span(span: Span): string;
  length(span: Span): string;
  /** Empty where nothing is known: that a draft without a resource is free says nothing. */
  verdict(verdict: Verdict, row: Row | null): string;
  /** A draft and what the rule says of it. */
  draft(draft: Draft, row: Row | null, verdict: Verdict): string;
}

export function makeSpeech(labels: Labels, format: TimeFormat): Speech {
  const what = (item: Item) => item.title ?? (item.band ? labels.band.count(item.band.count, item.kind) : labels.kind[item.kind]);
  const filled = (item: Item): string | null => {
    if (!item.band) return null;
    const { stepMs } = item.band;
    const by = stepMs === null ? labels.band.atOnce : labels.band.perStep(formatLength(stepMs, labels.units));
    return `${by}, ${labels.band.full(fullestOf(item.band))}`;
  };
  const length = (span: Span) => formatLength(lengthOf(span), labels.units);
  const verdict = (said: Verdict, row: Row | null): string => {
    const words = labels.verdict;
    switch (said.kind) {
      case 'free': {
        if (!row) return '';
        const isPartlyTaken = said.left !== null && row.capacity && said.left < row.capacity.amount;
        return isPartlyTaken ? words.left(said.left!, row.capacity!.unit) : words.free;
      }
      case 'busy':
        return words.busy(what(said.by), format.moment(said.by.end));
      case 'blocked_by_parent':
        return words.blockedByParent(said.row.name, what(said.by), format.moment(said.by.end));
      case 'blocked_by_child':
        return words.blockedByChild(said.row.name, what(said.by), format.moment(said.by.end));
      case 'not_allowed':
        return said.why;
    }
  };
  return {
    what,
    length,
    filled,
    verdict,
    span: (span) => format.span(span),
    item(item, row) {
      const isNamed = item.title !== null;
      const parts = [
        what(item),
        filled(item),
        // The title and the owner stand side by side on the item, so they do in its name.
        item.mine ? labels.yours : item.owner,
        isNamed && item.kind !== 'booking' ? labels.kind[item.kind] : null,
        row?.name,
        item.amount !== null && row?.capacity ? labels.amount(item.amount, row.capacity.unit) : null,
        format.span(item),
        length(item),
        item.state,
      ];
      return parts.filter(Boolean).join(', ');
    },
    rest(item) {
      const isNamed = item.title !== null;
      const parts = [
        filled(item),
        item.mine ? labels.yours : null,
        isNamed && item.kind !== 'booking' ? labels.kind[item.kind] : null,
        format.span(item),
        length(item),
        item.state,
      ];
      return parts.filter(Boolean).join(', ');
    },
    draft: (draft, row, said) =>
      [row?.name, format.span(draft), length(draft), verdict(said, row)].filter(Boolean).join(', '),
  };
}
