/**
 * What is kept for fans who asked for returned seats before. The seat map is the same for
 * everybody, so a page asks what of it this user cannot have.
 */
import { api, call, type Schemas } from '$lib/api/client';

export type Gate = Schemas['GateView'];

export async function readGates(eventId: string): Promise<readonly Gate[]> {
  const path = { eventId };
  const found = await call(api.GET('/api/alerts/events/{eventId}/gates', { params: { path } }));
  return found.gates;
}

/** The grades of which nothing can be taken, as indices of the hall's grades. */
export function closedGrades(gates: readonly Gate[], grades: readonly string[]): Set<number> {
  const closed = gates.filter(({ quantityMax }) => quantityMax === 0);
  return new Set(closed.map(({ grade }) => grades.indexOf(grade ?? '')));
}

/** How many seats of these grades may be taken together. */
export function gateLimit(gates: readonly Gate[], grades: readonly string[]): number {
  const limits = gates.filter(({ grade }) => grades.includes(grade ?? ''));
  return Math.min(Infinity, ...limits.map(({ quantityMax }) => quantityMax));
}
