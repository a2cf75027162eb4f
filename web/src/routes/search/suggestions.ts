/** Artists and venues of what was found, most frequent first: where a half typed word may lead. */
import type { Schemas } from '$lib/api/client';

export interface Suggestion {
  readonly text: string;
  /** Only of an artist. */
  readonly artistId: string | null;
}

type Found = Pick<Schemas['EventSummaryView'], 'artistId' | 'artistName' | 'venueName'>;

const SUGGESTIONS_MAX = 5;

export function suggestionsOf(events: readonly Found[], query: string): Suggestion[] {
  const found = new Map<string, { suggestion: Suggestion; times: number }>();
  const add = (text: string, artistId: string | null) => {
    const times = (found.get(text)?.times ?? 0) + 1;
    found.set(text, { suggestion: { text, artistId }, times });
  };
  for (const { artistId, artistName, venueName } of events) {
    if (artistName && artistId) add(artistName, artistId);
    add(venueName, null);
  }
  return [...found.values()]
    .filter(({ suggestion }) => suggestion.artistId !== null || suggestion.text !== query)
    .sort((a, b) => b.times - a.times)
    .slice(0, SUGGESTIONS_MAX)
    .map(({ suggestion }) => suggestion);
}
