/** Addresses that more than one page leads to. */

/** Where an identity is checked; the user comes back from there. */
export function identityPath(from: string): string {
  return `/my/identity?return=${encodeURIComponent(from)}`;
}

export type Payable = 'reservation' | 'membership' | 'transfer';

/** Where something is paid: `/checkout/{kind}/{id}`. */
export function checkoutPath(kind: Payable, id: string): string {
  return `/checkout/${kind}/${id}`;
}

/** The waiting room is a page of the program itself, so it is loaded as a whole. */
export function queuePath(eventId: string): string {
  return `/queue/${eventId}`;
}
