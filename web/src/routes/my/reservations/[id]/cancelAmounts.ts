/** What a cancellation gives back: the amounts are the server's, only their sum is made here. */
import type { Schemas } from '$lib/api/client';

export interface CancelAmounts {
  /** The price of what is cancelled. */
  readonly paid: number;
  readonly fee: number;
  readonly refund: number;
  /** Everything that is still valid is cancelled: then the booking fee counts too. */
  readonly isWhole: boolean;
}

export function cancelAmounts(
  preview: Schemas['RefundPreview'],
  chosen: readonly string[],
  validCount: number,
): CancelAmounts {
  if (chosen.length === validCount) {
    const { refundAmount: refund, cancellationFee: fee } = preview;
    return { paid: refund + fee, fee, refund, isWhole: true };
  }
  const tickets = preview.tickets.filter((ticket) => chosen.includes(ticket.ticketNumber));
  const sum = (amount: (ticket: Schemas['TicketRefund']) => number) =>
    tickets.reduce((total, ticket) => total + amount(ticket), 0);
  return {
    paid: sum((ticket) => ticket.price),
    fee: sum((ticket) => ticket.cancellationFee),
    refund: sum((ticket) => ticket.refundAmount),
    isWhole: false,
  };
}
