// What every calendar does with the keys, the focus and the clicks that it is given.

import { tick } from 'svelte';
import type { CalendarProps } from '../timeline/types';
import type { CalendarDesk } from './desk.svelte';

export function calendarEvents(desk: CalendarDesk, props: () => CalendarProps, root: () => HTMLElement) {
  return {
    onkeydown(event: KeyboardEvent) {
      if (desk.stroke(event)) event.preventDefault();
    },
    onfocusin(event: FocusEvent) {
      const target = event.target as HTMLElement;
      const id = target.closest<HTMLElement>('[data-item]')?.dataset.item;
      const item = id === undefined ? null : desk.claims.byId.get(id);
      if (item) desk.arrivedAt({ time: item.start, item: item.id });
    },
    onfocusout(event: FocusEvent) {
      const target = event.target as HTMLElement;
      if (root().contains(event.relatedTarget as Node | null)) return;
      if (desk.session.dragging?.by === 'keys' && document.hasFocus()) desk.session.send({ type: 'giveUp' });
      // An item that moves to another day is taken away with the focus on it, and stands there anew.
      void tick().then(() => {
        const wasTakenAway = !target.isConnected && document.activeElement === document.body;
        if (wasTakenAway) desk.focus();
      });
    },
    onclick(event: MouseEvent) {
      const target = event.target as HTMLElement;
      const opens = target.closest<HTMLElement>('[data-opens]')?.dataset.opens;
      if (opens !== undefined) return props().onopenday?.(Number(opens));
      // A click without a pointer comes from a screen reader or a voice; those of the hand have been dealt with.
      const anchor = target.closest<HTMLElement>('[data-item]');
      const item = desk.claims.byId.get(anchor?.dataset.item ?? '');
      if (event.detail === 0 && anchor && item) props().onopen?.(item, anchor);
    },
  };
}
