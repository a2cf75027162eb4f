/** Of what was added last, the events that somebody can still go to. */
const NEWEST = 4;

export function newestEvents<T extends { readonly status: string }>(events: readonly T[]): T[] {
  return events.filter(({ status }) => ['on_sale', 'upcoming'].includes(status)).slice(0, NEWEST);
}
