/** The event that a page below `/admin/events/{id}` is about. Pages of one event share the answer. */
import { page } from '$app/state';
import { api, call, type Schemas } from '$lib/api/client';
import { createQuery, type Query } from '$lib/api/query.svelte';

export type AdminEvent = Schemas['AdminEventView'];

export function eventKey(id: string): string {
  return `admin/event/${id}`;
}

export function createEventQuery(): Query<Schemas['AdminEventDetailView']> {
  const id = () => page.params.id ?? '';
  return createQuery(
    () => eventKey(id()),
    () => call(api.GET('/api/admin/events/{id}', { params: { path: { id: id() } } })),
    { staleMs: 2_000, everyMs: 3_000 },
  );
}
