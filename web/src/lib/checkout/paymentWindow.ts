/** Where the buyer agrees to a payment. The provider sends the buyer back to the result page. */
import { ApiFailure } from '$lib/api/failure';
import type { Schemas } from '$lib/api/client';

/**
 * Leaves the page. It is replaced in the history: the back button of the result leads to what was
 * before the payment.
 */
export function openPaymentWindow(order: Schemas['OrderView'], resultPath: string): void {
  // The sandbox has a window of its own. Other providers need their script on the page.
  if (order.provider !== 'sandbox') throw new ApiFailure(503, { code: 'PROVIDER_UNAVAILABLE' });
  const query = new URLSearchParams({
    orderId: order.orderId,
    successUrl: resultPath,
    failUrl: resultPath,
  });
  location.replace(`/sandbox/pay?${query}`);
}
