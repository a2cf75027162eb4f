/**
 * Times as organisers enter them: in Korea, whatever the device says. Korea has no summer time, so
 * the offset is always nine hours.
 */
const OFFSET_MS = 9 * 3_600_000;
const INPUT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$/;

/** The value of a `datetime-local` field. */
export function toSeoulInput(iso: string): string {
  return new Date(Date.parse(iso) + OFFSET_MS).toISOString().slice(0, 16);
}

/** The moment that a field means; null if it is empty or no time. */
export function fromSeoulInput(text: string): string | null {
  if (!INPUT.test(text)) return null;
  const moment = new Date(`${text}:00+09:00`);
  return Number.isNaN(moment.getTime()) ? null : moment.toISOString();
}

/** A time of a field, so many minutes later. */
export function later(text: string, minutes: number): string {
  const iso = fromSeoulInput(text);
  return iso ? toSeoulInput(new Date(Date.parse(iso) + minutes * 60_000).toISOString()) : '';
}
