/** Short messages about what was just done, each with at most one act: usually to undo it. */
import type { Failure } from '../api/problem';

export interface Toast {
  readonly id: number;
  readonly tone: 'good' | 'bad';
  readonly text: string;
  readonly failure?: Failure;
  readonly act?: { readonly label: string; readonly run: () => Promise<void> | void };
}

/** Long enough to read two lines and reach for the button. */
const STAY_MS = 10_000;

class Toasts {
  list = $state.raw<readonly Toast[]>([]);
  #next = 1;
  #timers = new Map<number, ReturnType<typeof setTimeout>>();

  say(text: string, act?: Toast['act']): void {
    this.#add({ tone: 'good', text, ...(act ? { act } : {}) });
  }

  /** A failure of something that has no place of its own on the page, such as a drag. */
  fail(text: string, failure?: Failure): void {
    this.#add({ tone: 'bad', text, ...(failure ? { failure } : {}) });
  }

  close(id: number): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
    this.list = this.list.filter((toast) => toast.id !== id);
  }

  /** They stay while someone looks at them. */
  hold(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  release(): void {
    for (const toast of this.list) this.#time(toast.id);
  }

  #add(toast: Omit<Toast, 'id'>): void {
    const id = this.#next++;
    this.list = [...this.list.slice(-3), { ...toast, id }];
    this.#time(id);
  }

  #time(id: number): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.set(id, setTimeout(() => this.close(id), STAY_MS));
  }
}

export const toasts = new Toasts();
