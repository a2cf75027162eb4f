/** How a payment stands, for the page that waits for it. */
import type { Schemas } from '$lib/api/client';
import type { ApiFailure } from '$lib/api/failure';

export type Outcome = 'checking' | 'paid' | 'failed' | 'returning' | 'returned' | 'not-started';

type Payment = Pick<Schemas['PaymentView'], 'status' | 'isSettled'>;

export function outcomeOf(payment: Payment): Outcome {
  switch (payment.status) {
    case 'confirmed':
      return 'paid';
    case 'failed':
      return 'failed';
    case 'refunding':
      return 'returning';
    case 'refunded':
      return 'returned';
    case 'pending':
      return 'not-started';
    default:
      return 'checking';
  }
}

/** The request may have been carried out although no answer says so. */
export function isUnclear(failure: ApiFailure): boolean {
  return (
    failure.status === 0 ||
    failure.status === 504 ||
    ['OUTCOME_UNKNOWN', 'SERVICE_UNAVAILABLE', 'PAYMENT_IN_PROGRESS'].includes(failure.code)
  );
}

/** How long to wait before the next question: often at first, then calmly. */
export function pollDelayMs(question: number): number {
  return question < 10 ? 1_500 : question < 40 ? 3_000 : 8_000;
}
