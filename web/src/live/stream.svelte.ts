/**
 * The one live stream that all pages share.
 *
 * It goes on after the last event it saw, so nothing is lost while a laptop sleeps. What a page shows is a copy of the
 * server's state; an event only says that the copy is old, and the page reads it again.
 */
import { apiAddress } from '../api/base';
import type { Event as BerthEvent, EventKind } from '../api/types';
import { FrameReader, type Frame } from './frames';

export type Connection = 'off' | 'connecting' | 'live' | 'lost';

/** The server shows a sign of life every 15 s; three of them missed is a dead line, whatever the socket says. */
const SILENCE_MS = 45_000;
const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000];

type Hear = (event: BerthEvent) => void;
type Heal = () => void;

class Stream {
  connection = $state<Connection>('off');
  /** When the server was last heard, in milliseconds; pages say "as of …" with it while the line is lost. */
  heardAt = $state(0);
  /** The number of the latest event, after which a new line goes on. */
  #position = 0;

  #hearers = new Set<Hear>();
  #healers = new Set<Heal>();
  #stop: AbortController | null = null;
  #attempts = 0;
  #refused: () => void = () => undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;

  start(): void {
    if (this.connection !== 'off') return;
    this.connection = 'connecting';
    addEventListener('online', this.#now);
    addEventListener('offline', this.#cut);
    void this.#run();
  }

  stop(): void {
    removeEventListener('online', this.#now);
    removeEventListener('offline', this.#cut);
    clearTimeout(this.#retry);
    clearTimeout(this.#silence);
    this.#stop?.abort();
    this.connection = 'off';
    this.#position = 0;
  }

  /** Hears every event that concerns the person, until the returned function is called. */
  hear(hearer: Hear): () => void {
    this.#hearers.add(hearer);
    return () => this.#hearers.delete(hearer);
  }

  /** Called when a lost line is back; whatever was missed is heard after it. */
  healed(healer: Heal): () => void {
    this.#healers.add(healer);
    return () => this.#healers.delete(healer);
  }

  /** What to do when the server does not know us any more. */
  whenRefused(act: () => void): void {
    this.#refused = act;
  }

  #now = () => {
    clearTimeout(this.#retry);
    if (this.connection === 'lost') void this.#run();
  };

  // The browser knows that the network is gone long before a silent socket shows it.
  #cut = () => this.#stop?.abort();

  async #run(): Promise<void> {
    const stop = new AbortController();
    this.#stop = stop;
    try {
      await this.#read(stop.signal);
    } catch {
      // Every way in which a line can break is answered in the same way: by trying again.
    }
    clearTimeout(this.#silence);
    if (this.connection === 'off' || this.#stop !== stop) return;
    this.connection = 'lost';
    const wait = RETRY_MS[Math.min(this.#attempts, RETRY_MS.length - 1)] ?? 10_000;
    this.#attempts += 1;
    this.#retry = setTimeout(() => void this.#run(), wait);
  }

  async #read(signal: AbortSignal): Promise<void> {
    const headers: Record<string, string> = { accept: 'text/event-stream' };
    if (this.#position > 0) headers['last-event-id'] = String(this.#position);
    this.#expectSound();
    const response = await fetch(`${apiAddress()}/events/stream`, { headers, signal, cache: 'no-store' });
    if (response.status === 401) this.#refused();
    if (!response.ok || !response.body) return;
    const wasLost = this.connection === 'lost';
    this.connection = 'live';
    this.#attempts = 0;
    if (wasLost) for (const heal of this.#healers) heal();
    const reader = new FrameReader();
    const text = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await text.read();
      if (done) return;
      this.#expectSound();
      for (const frame of reader.push(value)) this.#take(frame);
    }
  }

  #expectSound(): void {
    this.heardAt = Date.now();
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#stop?.abort(), SILENCE_MS);
  }

  #take(frame: Frame): void {
    if (frame.id) this.#position = Number(frame.id);
    if (frame.data === '' || frame.event === 'problem') return;
    const event = JSON.parse(frame.data) as BerthEvent;
    for (const hear of this.#hearers) hear(event);
  }
}

export const live = new Stream();

/** Whether an event is of one of these families: `reservation` stands for `reservation.created` and the others. */
export function isOf(kind: EventKind, families: readonly string[]): boolean {
  return families.includes(kind.slice(0, kind.indexOf('.')));
}
