/** A list that is read part by part: by a cursor, or by the time of its last item. */
import { ApiFailure } from '$lib/api/failure';

export interface ListPart<Item> {
  readonly items: readonly Item[];
  /** Where the next part begins; null on the last one. */
  readonly next: string | null;
}

export class ListReader<Item> {
  #items = $state.raw<readonly Item[] | undefined>();
  #next = $state.raw<string | null>(null);
  failure = $state.raw<ApiFailure | undefined>();
  isBusy = $state(false);
  /** Counts the beginnings, so that the answer of an earlier one is dropped. */
  #turn = 0;
  readonly #read: (after: string | null) => Promise<ListPart<Item>>;

  constructor(read: (after: string | null) => Promise<ListPart<Item>>) {
    this.#read = read;
  }

  /** Undefined while the first part is on its way. */
  get items(): readonly Item[] | undefined {
    return this.#items;
  }

  get hasMore(): boolean {
    return this.#next !== null;
  }

  /** Reads from the start, for example after another filter was chosen. */
  async begin(): Promise<void> {
    this.#turn += 1;
    this.#items = undefined;
    this.#next = null;
    this.isBusy = false;
    await this.#load(null);
  }

  async more(): Promise<void> {
    if (this.#next !== null && !this.isBusy) await this.#load(this.#next);
  }

  /** Changes items that are shown, after an action. */
  update(change: (item: Item) => Item): void {
    this.#items = this.#items?.map(change);
  }

  async #load(after: string | null): Promise<void> {
    const turn = this.#turn;
    this.isBusy = true;
    this.failure = undefined;
    try {
      const part = await this.#read(after);
      if (turn !== this.#turn) return;
      this.#items = [...(this.#items ?? []), ...part.items];
      this.#next = part.next;
    } catch (error) {
      if (turn === this.#turn) this.failure = ApiFailure.from(error);
    } finally {
      if (turn === this.#turn) this.isBusy = false;
    }
  }
}
