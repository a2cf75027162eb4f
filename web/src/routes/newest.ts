/** Ids of events begin with the time at which they were made, so the greatest are the newest. */
const NEWEST = 4;

export function newestEvents<T extends { readonly id: string }>(events: readonly T[]): T[] {
  return [...events].sort((a, b) => (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)).slice(0, NEWEST);
}
