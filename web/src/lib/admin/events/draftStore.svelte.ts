/**
 * Keeps the draft of a new event in this browser, per user: a reload, a crash or an expired session
 * loses nothing. The idempotency key is kept with it, so that publishing again after a lost answer
 * makes no second event.
 */
import { session } from '$lib/session/session.svelte';
import { emptyDraft, type EventDraft, isEmptyDraft } from './draft';
import { type Step, STEPS } from './problems';

interface Kept {
  readonly draft: EventDraft;
  readonly step: Step;
  readonly wish?: string | undefined;
  readonly key?: string | undefined;
  /** The event exists; what is left to do is its waiting room. */
  readonly createdId?: string | undefined;
}

function storageKey(): string {
  return `urr.admin.eventDraft.${session.user?.userId ?? ''}`;
}

function read(): Kept | null {
  try {
    const kept = JSON.parse(localStorage.getItem(storageKey()) ?? 'null') as Kept | null;
    if (!kept?.draft || !STEPS.includes(kept.step)) return null;
    // A field that an earlier version of the page did not have gets its default.
    return { ...kept, draft: { ...emptyDraft(), ...kept.draft } };
  } catch {
    return null;
  }
}

export class DraftStore {
  draft = $state<EventDraft>(emptyDraft());
  step = $state<Step>('basics');
  createdId = $state<string | undefined>();
  /** The draft was found in the browser. */
  isRestored = $state(false);
  #wish: string | undefined;
  #key: string | undefined;

  constructor() {
    const kept = read();
    if (!kept) return;
    this.draft = kept.draft;
    this.step = kept.step;
    this.createdId = kept.createdId;
    this.#wish = kept.wish;
    this.#key = kept.key;
    this.isRestored = !isEmptyDraft(kept.draft);
  }

  /** Call it in an effect: it reads everything that is kept. */
  keep(): void {
    const { draft, step, createdId } = this;
    const kept: Kept = { draft, step, createdId, wish: this.#wish, key: this.#key };
    const text = JSON.stringify(kept);
    try {
      if (isEmptyDraft(draft)) localStorage.removeItem(storageKey());
      else localStorage.setItem(storageKey(), text);
    } catch {
      // Without storage the draft lasts as long as the page.
    }
  }

  /** The same for the same wish, also after a reload. */
  keyFor(wish: unknown): string {
    const text = JSON.stringify(wish);
    if (!this.#key || text !== this.#wish) {
      this.#wish = text;
      this.#key = crypto.randomUUID();
      this.keep();
    }
    return this.#key;
  }

  created(id: string): void {
    this.createdId = id;
    this.keep();
  }

  /** Begins again: with nothing, or with a copy of another event. */
  reset(draft: EventDraft = emptyDraft()): void {
    this.draft = draft;
    this.step = 'basics';
    this.createdId = undefined;
    this.isRestored = false;
    this.#wish = undefined;
    this.#key = undefined;
    this.keep();
  }
}
