/** What `/events` shows, read from its address. Unknown values count as absent. */
import { koreanDay } from '$lib/format';
import { readId, readPage } from '$lib/parameters';

export const STATUSES = ['on_sale', 'upcoming', 'ended', 'cancelled'] as const;
export const DEFAULT_STATUS = 'on_sale';
const SORTS = ['saleStart', 'date', 'newest', 'title'] as const;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const MONTH = /^\d{4}-(0[1-9]|1[0-2])$/;

export type Status = (typeof STATUSES)[number];

export interface Filters {
  readonly status: Status | 'all';
  readonly sort: (typeof SORTS)[number];
  /** Korean calendar days, both included. */
  readonly from: string | null;
  readonly to: string | null;
  readonly artistId: string | null;
  readonly view: 'list' | 'calendar';
  /** The month of the calendar, as `2026-12`. */
  readonly month: string;
  readonly page: number;
}

export function readFilters(parameters: URLSearchParams): Filters {
  const one = <T extends string>(name: string, allowed: readonly T[]) =>
    allowed.find((value) => value === parameters.get(name));
  const matching = (name: string, pattern: RegExp) => {
    const value = parameters.get(name);
    return value !== null && pattern.test(value) ? value : null;
  };
  const day = (name: string) => {
    const value = matching(name, DAY);
    return value !== null && isCalendarDay(value) ? value : null;
  };
  return {
    status: one('status', [...STATUSES, 'all']) ?? DEFAULT_STATUS,
    sort: one('sort', SORTS) ?? 'saleStart',
    from: day('from'),
    to: day('to'),
    artistId: readId(parameters, 'artist'),
    view: parameters.get('view') === 'calendar' ? 'calendar' : 'list',
    month: matching('month', MONTH) ?? koreanDay(Date.now()).slice(0, 7),
    page: readPage(parameters),
  };
}

export function toQuery(filters: Filters) {
  return {
    ...(filters.status !== 'all' && { status: filters.status }),
    ...(filters.artistId && { artistId: filters.artistId }),
    ...(filters.from && { from: startOfKoreanDay(filters.from) }),
    ...(filters.to && { to: startOfKoreanDay(nextDay(filters.to)) }),
    sort: filters.sort,
    page: filters.page,
    limit: 24,
  };
}

/** Korea has one offset and no summer time. */
export function startOfKoreanDay(day: string): string {
  return `${day}T00:00:00+09:00`;
}

/** No month has a 32nd, and February no 30th. */
function isCalendarDay(day: string): boolean {
  const ms = Date.parse(`${day}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
}

export function nextDay(day: string): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);
}

/** `2026-12` moved by whole months. */
export function moveMonth(month: string, by: number): string {
  const [year = 0, number = 1] = month.split('-').map(Number);
  return new Date(Date.UTC(year, number - 1 + by, 1)).toISOString().slice(0, 7);
}

/** The days of a month in weeks from Sunday; null outside of the month. */
export function weeksOf(month: string): (string | null)[][] {
  const first = new Date(`${month}-01T00:00:00Z`);
  const days = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate();
  const cells: (string | null)[] = Array.from({ length: first.getUTCDay() }, () => null);
  for (let day = 1; day <= days; day++) cells.push(`${month}-${String(day).padStart(2, '0')}`);
  while (cells.length % 7 !== 0) cells.push(null);
  return Array.from({ length: cells.length / 7 }, (_, week) => cells.slice(week * 7, week * 7 + 7));
}
