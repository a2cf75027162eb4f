/** Venues and halls to choose from. */
import { api, call, type Schemas } from '$lib/api/client';

export type Venue = Schemas['VenueView'];
export type Hall = Schemas['HallSummaryView'];

const PAGE = 100;
/** More venues than a list can show usefully. */
const PAGES_MAX = 10;

export async function readVenues(): Promise<Venue[]> {
  const venues: Venue[] = [];
  for (let page = 1; page <= PAGES_MAX; page++) {
    const part = await call(api.GET('/api/venues', { params: { query: { page, limit: PAGE } } }));
    venues.push(...part.venues);
    if (page >= part.pagination.totalPages) break;
  }
  return venues.sort((a, b) => a.name.localeCompare(b.name, 'ko'));
}

export async function readHalls(venueId: string): Promise<Hall[]> {
  const params = { path: { id: venueId } };
  return (await call(api.GET('/api/venues/{id}', { params }))).halls;
}

/** Prices for the grades of a hall; those that were typed stay. */
export function pricesFor(hall: Hall, typed: Record<string, string>): Record<string, string> {
  return Object.fromEntries(hall.grades.map((grade) => [grade, typed[grade] ?? '']));
}
