/** Days of statistics as lines of a chart: every day has a point, also those without figures. */
import type { ChartRow } from '../charts/chart';

const DAY_SECONDS = 86_400;
/** Days are Korea's. */
const KOREA_SECONDS = 9 * 3_600;

export interface DayColumns {
  readonly at: number[];
  readonly values: number[][];
  readonly rows: ChartRow[];
}

/** When a Korean day begins, in seconds since 1970. */
export function startOfDay(date: string): number {
  return Date.parse(`${date}T00:00:00Z`) / 1_000 - KOREA_SECONDS;
}

/** `11/15`. */
export function dayText(second: number): string {
  const date = new Date((second + KOREA_SECONDS) * 1_000);
  return `${date.getUTCMonth() + 1}/${date.getUTCDate()}`;
}

/** Figures by day, in whatever order; `figures` gives the values of the lines. */
export function dayColumns<Day extends { readonly date: string }>(
  days: readonly Day[],
  figures: readonly ((day: Day) => number)[],
): DayColumns {
  const byStart = new Map(days.map((day) => [startOfDay(day.date), day]));
  const starts = [...byStart.keys()].sort((a, b) => a - b);
  const [first, last] = [starts[0], starts.at(-1)];
  const columns: DayColumns = { at: [], values: figures.map(() => []), rows: [] };
  if (first === undefined || last === undefined) return columns;
  // One day alone is no line: it begins the day before.
  const start = first === last ? first - DAY_SECONDS : first;
  for (let at = start; at <= last; at += DAY_SECONDS) {
    const day = byStart.get(at);
    const values = figures.map((figure) => (day ? figure(day) : 0));
    columns.at.push(at);
    values.forEach((value, index) => columns.values[index]!.push(value));
    columns.rows.unshift({ at, values });
  }
  return columns;
}

/** Each value with all before it. */
export function runningTotal(values: readonly number[]): number[] {
  let total = 0;
  return values.map((value) => (total += value));
}
