/**
 * What undo and redo need. Values are kept whole; they share what did not change, so a step costs
 * what it changed.
 */
const STEPS_MAX = 1_000;

interface Step<T> {
  readonly value: T;
  /** What led to this value, for the sentence "undone: …". */
  readonly label: string;
  readonly mergeKey: string | null;
}

export class History<T> {
  readonly #steps: readonly Step<T>[];
  readonly #at: number;

  private constructor(steps: readonly Step<T>[], at: number) {
    this.#steps = steps;
    this.#at = at;
  }

  static of<T>(value: T): History<T> {
    return new History([{ value, label: '', mergeKey: null }], 0);
  }

  get value(): T {
    return this.#steps[this.#at]!.value;
  }

  /**
   * A new value. Changes with the same merge key follow each other as one step: typing in a field,
   * or an arrow key that is held.
   */
  push(value: T, label: string, mergeKey: string | null = null): History<T> {
    if (value === this.value) return this;
    const before = this.#steps.slice(0, this.#at + 1);
    const last = before.at(-1)!;
    if (mergeKey !== null && last.mergeKey === mergeKey && before.length > 1) before.pop();
    const steps = [...before, { value, label, mergeKey }].slice(-STEPS_MAX);
    return new History(steps, steps.length - 1);
  }

  /** The next change is a step of its own, whatever its merge key. */
  sealed(): History<T> {
    const steps = this.#steps.map((step, index) =>
      index === this.#at ? { ...step, mergeKey: null } : step,
    );
    return new History(steps, this.#at);
  }

  /** What undo would take back; null if there is nothing. */
  get undoLabel(): string | null {
    return this.#at > 0 ? this.#steps[this.#at]!.label : null;
  }

  get redoLabel(): string | null {
    return this.#steps[this.#at + 1]?.label ?? null;
  }

  undo(): History<T> {
    return this.#at > 0 ? new History(this.#steps, this.#at - 1) : this;
  }

  redo(): History<T> {
    return this.#at + 1 < this.#steps.length ? new History(this.#steps, this.#at + 1) : this;
  }
}
