/**
 * The key under which a wish is sent. Attempts for the same wish share it, so that a lost answer
 * or a double click has one effect; another wish gets another key.
 */
export class WishKey {
  #wish = '';
  #key = '';

  for(wish: unknown): string {
    const text = JSON.stringify(wish);
    if (text !== this.#wish || this.#key === '') {
      this.#wish = text;
      this.#key = crypto.randomUUID();
    }
    return this.#key;
  }

  /** The server has decided: the next attempt is a new wish. */
  decided(): void {
    this.#key = '';
  }
}
