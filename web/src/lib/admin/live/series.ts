/**
 * The figures of a sale in columns, as the stream tells them: seconds of the last quarter of an
 * hour, minutes of the last day. A page that was away gets only what it missed.
 */
import type { Schemas } from '$lib/api/client';

export type LiveBoard = Schemas['LiveBoardView'];
export type LiveNow = Schemas['LiveNowView'];
type Seconds = Schemas['LiveSecondsView'];
type Minutes = Schemas['LiveMinutesView'];

export type Figure = number | null;
export type SecondName = Exclude<keyof Seconds, 'at'>;
export type MinuteName = Exclude<keyof Minutes, 'at'>;

export const SECONDS_KEPT = 15 * 60;
const MINUTES_KEPT = 24 * 60;

/** Figures that are sums over a span; the others are as of its end. */
const SUMS: readonly MinuteName[] = [
  'arrivals',
  'admitted',
  'left',
  'payments',
  'charged',
  'refunds',
];

type Columns<Name extends string> = { at: number[] } & Record<Name, Figure[]>;

export const SECOND_NAMES: readonly SecondName[] = [
  'waiting',
  'inside',
  'threshold',
  'arrivals',
  'admitted',
  'left',
  'available',
  'held',
  'sold',
  'payments',
  'charged',
  'refunds',
  'declined',
  'errors',
];
export const MINUTE_NAMES: readonly MinuteName[] = [
  'waiting',
  'inside',
  'arrivals',
  'admitted',
  'left',
  'payments',
  'charged',
  'refunds',
];

export class LiveSeries {
  readonly seconds = emptyColumns(SECOND_NAMES);
  readonly minutes = emptyColumns(MINUTE_NAMES);

  /** The last second that is known: where a stream goes on. */
  get lastSecond(): number | null {
    return this.seconds.at.at(-1) ?? null;
  }

  take(board: Pick<LiveBoard, 'seconds' | 'minutes'>): void {
    if (board.minutes) {
      clear(this.seconds, SECOND_NAMES);
      clear(this.minutes, MINUTE_NAMES);
      for (let row = 0; row < board.minutes.at.length; row++)
        copyRow(this.minutes, board.minutes, MINUTE_NAMES, row);
    }
    const last = this.lastSecond ?? -Infinity;
    for (let row = 0; row < board.seconds.at.length; row++) {
      if (board.seconds.at[row]! <= last) continue;
      copyRow(this.seconds, board.seconds, SECOND_NAMES, row);
      this.#addToMinute(this.seconds.at.length - 1);
    }
    forgetBefore(this.seconds, SECOND_NAMES, (this.lastSecond ?? 0) - SECONDS_KEPT);
    const lastMinute = this.minutes.at.at(-1) ?? 0;
    forgetBefore(this.minutes, MINUTE_NAMES, lastMinute - MINUTES_KEPT * 60);
  }

  /** Minutes after those that the server told are made of seconds. */
  #addToMinute(row: number): void {
    const minute = Math.floor(this.seconds.at[row]! / 60) * 60;
    const last = this.minutes.at.at(-1) ?? -Infinity;
    if (minute < last || (minute === last && !this.#isOwn(minute))) return;
    if (minute > last) {
      this.minutes.at.push(minute);
      for (const name of MINUTE_NAMES) this.minutes[name].push(null);
      this.#own.add(minute);
    }
    const index = this.minutes.at.length - 1;
    for (const name of MINUTE_NAMES) {
      const value = this.seconds[name][row] ?? null;
      if (value === null) continue;
      const before = this.minutes[name][index] ?? 0;
      this.minutes[name][index] = SUMS.includes(name) ? before + value : value;
    }
  }

  readonly #own = new Set<number>();

  #isOwn(minute: number): boolean {
    return this.#own.has(minute);
  }
}

function emptyColumns<Name extends string>(names: readonly Name[]): Columns<Name> {
  const columns = Object.fromEntries(names.map((name) => [name, [] as Figure[]]));
  return { at: [] as number[], ...columns } as Columns<Name>;
}

function clear<Name extends string>(columns: Columns<Name>, names: readonly Name[]): void {
  columns.at.length = 0;
  for (const name of names) columns[name].length = 0;
}

function copyRow<Name extends string>(
  to: Columns<Name>,
  from: { at: number[] } & Partial<Record<Name, readonly (Figure | undefined)[]>>,
  names: readonly Name[],
  row: number,
): void {
  to.at.push(from.at[row]!);
  for (const name of names) to[name].push(from[name]?.[row] ?? null);
}

function forgetBefore<Name extends string>(
  columns: Columns<Name>,
  names: readonly Name[],
  second: number,
): void {
  const gone = columns.at.findIndex((at) => at > second);
  if (gone <= 0) return;
  columns.at.splice(0, gone);
  for (const name of names) columns[name].splice(0, gone);
}

/** Rows for a table: one per step, the newest first. */
export function tableRows<Name extends string>(
  columns: Columns<Name>,
  names: readonly Name[],
  stepSeconds: number,
  rowsMax: number,
): { at: number; values: Figure[] }[] {
  const rows: { at: number; values: Figure[] }[] = [];
  let next = Infinity;
  for (let row = columns.at.length - 1; row >= 0 && rows.length < rowsMax; row--) {
    const at = columns.at[row]!;
    if (at > next) continue;
    rows.push({ at, values: names.map((name) => columns[name][row] ?? null) });
    next = at - stepSeconds;
  }
  return rows;
}

/** The sum of a figure over the last seconds, and null if none of them is known. */
export function sumOfLast(values: readonly Figure[], seconds: number): Figure {
  const known = values.slice(-seconds).filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}

export function lastOf(values: readonly Figure[]): Figure {
  return values.at(-1) ?? null;
}
