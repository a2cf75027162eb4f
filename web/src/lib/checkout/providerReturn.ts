/** What a provider says in the address when it sends the buyer back. */
export type ProviderReturn =
  | { readonly kind: 'approved'; orderId: string; paymentKey: string; amount: number }
  /** The buyer or the provider ended it before anything was charged. */
  | { readonly kind: 'aborted' }
  /** The key was used: a reload, or an address that was opened again. */
  | { readonly kind: 'known'; orderId: string };

/** Toss and the sandbox call the key `paymentKey`, PortOne calls it `paymentToken`. */
export function readReturn(parameters: URLSearchParams): ProviderReturn {
  const orderId = parameters.get('orderId') ?? parameters.get('paymentId');
  if (parameters.has('code') || !orderId) return { kind: 'aborted' };
  const paymentKey = parameters.get('paymentKey') ?? parameters.get('paymentToken');
  if (!paymentKey) return { kind: 'known', orderId };
  return { kind: 'approved', orderId, paymentKey, amount: Number(parameters.get('amount')) };
}
