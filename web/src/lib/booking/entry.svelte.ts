/**
 * The user's slot in the sale of an event. The waiting room gives it; while the page is open it is
 * kept, and its token goes with every booking request. Without a slot the user goes back in line.
 */
import { api, call, type Schemas } from '$lib/api/client';
import { ApiFailure } from '$lib/api/failure';
import { queuePath } from '$lib/links';

type QueueStatus = Schemas['QueueStatusView'];

export type EntryState =
  | { readonly kind: 'asking' }
  | { readonly kind: 'inside' }
  /** It is not this user's turn: the waiting room is being loaded. */
  | { readonly kind: 'leaving' }
  | { readonly kind: 'refused'; readonly failure: ApiFailure }
  | { readonly kind: 'over'; readonly isCancelled: boolean };

export type EntryHeaders = { readonly 'x-queue-entry-token': string };

const KEEP_EVERY_MS = 30_000;

export class Entry {
  state = $state.raw<EntryState>({ kind: 'asking' });
  /** When the slot ends even if the page stays open. */
  endsAt = $state<string | null>(null);
  #token = '';
  readonly #eventId: string;

  constructor(eventId: string) {
    this.#eventId = eventId;
  }

  /** Takes a slot, or learns that the user has to wait. */
  async enter(): Promise<void> {
    this.state = { kind: 'asking' };
    try {
      this.#take(
        await call(api.POST('/api/queue/check/{eventId}', { params: { path: this.#path } })),
      );
    } catch (error) {
      this.state = { kind: 'refused', failure: ApiFailure.from(error) };
    }
  }

  /** Keeps the slot while the page is open; returns how to stop. */
  keep(): () => void {
    const timer = setInterval(() => void this.#renew().catch(() => {}), KEEP_EVERY_MS);
    const onVisible = () => {
      if (document.visibilityState === 'visible') void this.#renew().catch(() => {});
    };
    document.addEventListener('visibilitychange', onVisible);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', onVisible);
    };
  }

  get headers(): EntryHeaders {
    return { 'x-queue-entry-token': this.#token };
  }

  /** Sends a request with the token; one that is refused for its token is sent with a new one. */
  async send<T>(request: (headers: EntryHeaders) => Promise<T>): Promise<T> {
    try {
      return await request(this.headers);
    } catch (error) {
      const failure = ApiFailure.from(error);
      if (!failure.code.startsWith('ENTRY_TOKEN_')) throw failure;
      await this.#renew();
      if (this.state.kind !== 'inside') throw failure;
      return request(this.headers);
    }
  }

  get #path() {
    return { eventId: this.#eventId };
  }

  async #renew(): Promise<void> {
    if (this.state.kind !== 'inside') return;
    this.#take(
      await call(api.GET('/api/queue/status/{eventId}', { params: { path: this.#path } })),
    );
  }

  #take(status: QueueStatus): void {
    if (status.status === 'active' && status.entryToken) {
      this.#token = status.entryToken;
      this.endsAt = status.slotLastEnd ?? null;
      this.state = { kind: 'inside' };
    } else if (status.status === 'ended') {
      this.state = { kind: 'over', isCancelled: status.phase === 'cancelled' };
    } else {
      this.state = { kind: 'leaving' };
      location.assign(queuePath(this.#eventId));
    }
  }
}
