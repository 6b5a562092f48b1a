/**
 * Server-sent events, read from a stream of bytes.
 *
 * The browser's own EventSource cannot say why it was refused and hides when it last heard something, so the few lines that
 * it would spare are written here.
 */
export interface Frame {
  readonly id?: string;
  readonly event: string;
  readonly data: string;
}

/** Takes text as it arrives, in any pieces, and gives the frames that are whole. */
export class FrameReader {
  #rest = '';
  #id: string | undefined;
  #event = 'message';
  #data: string[] = [];
  #isEmpty = true;

  push(text: string): Frame[] {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    const frames: Frame[] = [];
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line !== '') this.#field(line);
      else if (!this.#isEmpty) frames.push(this.#take());
    }
    return frames;
  }

  #field(line: string): void {
    const colon = line.indexOf(':');
    // A line that begins with a colon is a sign of life and says nothing.
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'id') this.#id = value;
    else if (name === 'event') this.#event = value;
    else if (name === 'data') this.#data.push(value);
    this.#isEmpty = false;
  }

  #take(): Frame {
    const frame: Frame = {
      event: this.#event,
      data: this.#data.join('\n'),
      ...(this.#id === undefined ? {} : { id: this.#id }),
    };
    this.#id = undefined;
    this.#event = 'message';
    this.#data = [];
    this.#isEmpty = true;
    return frame;
  }
}
