/**
 * The key under which one wish is sent, however often it is sent.
 *
 * A person who presses "Book" again after a lost connection must not book twice, and one who changes the form and presses
 * again wants something else. So the key belongs to the content: the same content keeps it, other content gets a new one.
 */
export class Intent {
  #content = '';
  #key = '';

  keyFor(content: unknown): { readonly 'Idempotency-Key': string } {
    const text = JSON.stringify(content);
    if (text !== this.#content || this.#key === '') {
      this.#content = text;
      this.#key = randomKey();
    }
    return { 'Idempotency-Key': this.#key };
  }

  /** The wish was granted: the same again is a new wish. */
  fulfilled(): void {
    this.#key = '';
  }
}

// `crypto.randomUUID` exists only on secure origins, and a lab may serve Berth over plain http in its own network.
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
