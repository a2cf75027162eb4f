/** Every artist, for choices; pages share the answer. */
import { session } from '$lib/session/session.svelte';
import { api, call } from './client';
import { createQuery } from './query.svelte';

export function createArtistsQuery() {
  return createQuery(
    () => (session.isKnown ? 'artists/all' : null),
    () => call(api.GET('/api/artists', { params: { query: { limit: 100 } } })),
    { staleMs: 300_000 },
  );
}
