/**
 * Follows the changes of a seat map: a stream where it can be had, otherwise questions now and
 * then. `EventSource` cannot send the entry token, so the stream is read with `fetch`.
 */
import type { Schemas } from '$lib/api/client';

type SeatMapView = Schemas['SeatMapView'];

export interface LiveSource {
  /** Opens a stream of the changes after a version; refuses by throwing. */
  openStream(since: number, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  /** Asks once for the changes after a version. */
  ask(since: number, signal: AbortSignal): Promise<SeatMapView | null>;
  version(): number;
  take(map: SeatMapView): void;
  /** Whether live changes come in at the moment. */
  connected(isConnected: boolean): void;
}

const ASK_EVERY_MS = 4_000;
/** After so many refused streams in a row it only asks. */
const STREAM_ATTEMPTS = 3;
/** A heartbeat comes every 15 s; longer silence means that the connection is dead. */
const SILENCE_MS = 40_000;

/** Runs until the signal is aborted. */
export async function followSeats(source: LiveSource, signal: AbortSignal): Promise<void> {
  let refusals = 0;
  while (!signal.aborted) {
    if (refusals < STREAM_ATTEMPTS) {
      const hasOpened = await readStream(source, signal).catch(() => false);
      refusals = hasOpened ? 0 : refusals + 1;
    }
    if (signal.aborted) return;
    try {
      const map = await source.ask(source.version(), signal);
      if (map) source.take(map);
      source.connected(true);
    } catch {
      source.connected(false);
    }
    await pause(ASK_EVERY_MS * (0.75 + Math.random() / 2), signal);
  }
}

/** Reads one stream to its end; true if it was opened. */
async function readStream(source: LiveSource, outer: AbortSignal): Promise<boolean> {
  const silence = new AbortController();
  const signal = AbortSignal.any([outer, silence.signal]);
  const stream = await source.openStream(source.version(), signal);
  source.connected(true);
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const reader = stream.pipeThrough(new TextDecoderStream() as never).getReader();
    const parser = new EventParser();
    for (;;) {
      const { done, value } = (await reader.read()) as { done: boolean; value?: string };
      if (done) break;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      for (const data of parser.push(value ?? '')) source.take(JSON.parse(data) as SeatMapView);
    }
  } catch {
    // It broke off: the next question tells what was missed.
  } finally {
    clearTimeout(timer);
  }
  return true;
}

/** The data of server-sent events; everything else in the stream does not matter here. */
export class EventParser {
  #rest = '';
  #data: string[] = [];

  push(text: string): string[] {
    const complete: string[] = [];
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') {
        if (this.#data.length > 0) complete.push(this.#data.join('\n'));
        this.#data = [];
      } else if (line.startsWith('data:')) {
        this.#data.push(line.slice(line.startsWith('data: ') ? 6 : 5));
      }
    }
    return complete;
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
