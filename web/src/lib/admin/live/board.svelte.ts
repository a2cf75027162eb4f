/** Follows the live board of a sale for as long as a page shows it. */
import { ApiFailure } from '$lib/api/failure';
import { EventParser } from '$lib/seatmap/live';
import { session } from '$lib/session/session.svelte';
import { locale } from '$lib/text/locale';
import { LiveSeries, type LiveBoard, type LiveNow } from './series';

/** A message comes every second; longer silence means that the connection is dead. */
const SILENCE_MS = 15_000;
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 15_000;

export class BoardStream {
  now = $state.raw<LiveNow | null>(null);
  /** Grows with every message: the series are plain arrays. */
  version = $state(0);
  isConnected = $state(false);
  /** Why nothing can be shown; it is not tried again. */
  failure = $state.raw<ApiFailure | undefined>();
  readonly series = new LiveSeries();
  readonly #eventId: string;

  constructor(eventId: string) {
    this.#eventId = eventId;
  }

  /** Runs until the signal is aborted. */
  async follow(signal: AbortSignal): Promise<void> {
    let wait = RETRY_MS;
    while (!signal.aborted) {
      try {
        if (await this.#readOnce(signal)) wait = RETRY_MS;
      } catch (error) {
        if (error instanceof ApiFailure && error.status >= 400 && error.status < 429) {
          this.failure = error;
          return;
        }
      }
      this.isConnected = false;
      if (signal.aborted) return;
      await pause(wait * (0.75 + Math.random() / 2), signal);
      wait = Math.min(wait * 2, RETRY_MAX_MS);
    }
  }

  /** Reads one stream to its end; true if it told something. */
  async #readOnce(outer: AbortSignal): Promise<boolean> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    let hasTold = false;
    try {
      const stream = await this.#open(AbortSignal.any([outer, silence.signal]));
      const reader = stream.pipeThrough(new TextDecoderStream() as never).getReader();
      const parser = new EventParser();
      for (;;) {
        const { done, value } = (await reader.read()) as { done: boolean; value?: string };
        if (done) return hasTold;
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        for (const data of parser.push(value ?? '')) {
          this.#take(JSON.parse(data) as LiveBoard);
          hasTold = true;
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }

  async #open(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    await session.refreshIfDue();
    const response = await this.#fetch(signal);
    const again = response.status === 401 && (await session.refresh());
    const opened = again ? await this.#fetch(signal) : response;
    if (opened.ok && opened.body) return opened.body;
    const fields = (await opened.json().catch(() => ({}))) as Record<string, unknown>;
    throw new ApiFailure(opened.status, fields);
  }

  #fetch(signal: AbortSignal): Promise<Response> {
    const seen = this.series.lastSecond;
    const headers = new Headers({ accept: 'text/event-stream', 'accept-language': locale() });
    if (seen !== null) headers.set('last-event-id', String(seen));
    return fetch(`/api/admin/events/${this.#eventId}/live`, { headers, signal });
  }

  #take(board: LiveBoard): void {
    this.series.take(board);
    this.now = board.now;
    this.isConnected = true;
    this.version += 1;
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
