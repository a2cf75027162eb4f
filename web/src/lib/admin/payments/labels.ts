/** The words for states of payments and refunds. */
import * as m from '$lib/text/messages';

const STATUSES: Record<string, () => string> = {
  unknown: m.adminPayments_unknown,
  refunding: m.adminPayments_refunding,
  approving: m.adminPayments_approving,
  pending: m.adminPayments_pending,
  confirmed: m.adminPayments_confirmed,
  failed: m.adminPayments_failed,
  refunded: m.adminPayments_refunded,
};

/** Those that need somebody first. */
export const PAYMENT_STATUSES = Object.keys(STATUSES);

export function paymentStatus(status: string): string {
  return STATUSES[status]?.() ?? status;
}

export function paymentType(type: string): string {
  const labels: Record<string, string> = {
    reservation: m.adminPayments_type_reservation(),
    transfer: m.adminPayments_type_transfer(),
    membership: m.adminPayments_type_membership(),
  };
  return labels[type] ?? type;
}

export function refundStatus(status: string): string {
  const labels: Record<string, string> = {
    requested: m.adminPayments_refund_requested(),
    unknown: m.adminPayments_refund_unknown(),
    done: m.adminPayments_refund_finished(),
    closed: m.adminPayments_refund_closed(),
    withdrawn: m.adminPayments_refund_withdrawn(),
  };
  return labels[status] ?? status;
}
