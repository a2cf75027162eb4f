import * as m from '$lib/text/messages';

const LABELS: Record<string, () => string> = {
  purchase: m.adminMails_kind_purchase,
  complimentary: m.adminMails_kind_complimentary,
  cancellation: m.adminMails_kind_cancellation,
  part_cancellation: m.adminMails_kind_part,
  event_moved: m.adminMails_kind_moved,
  refund: m.adminMails_kind_refund,
  admission_near: m.adminMails_kind_admission,
  sale_alert: m.adminMails_kind_sale_alert,
  seat_alert: m.adminMails_kind_seat_alert,
  email_verification: m.adminMails_kind_verification,
  password_reset: m.adminMails_kind_reset,
};

export const MAIL_KINDS = Object.keys(LABELS);

export function mailKind(kind: string): string {
  return LABELS[kind]?.() ?? kind;
}
