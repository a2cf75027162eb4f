/** What happened to a reservation, in words. */
import type { Schemas } from '$lib/api/client';
import { dateTime, won } from '$lib/format';
import * as m from '$lib/text/messages';
import { mailKind } from '../mails/mailKind';

export type HistoryEntry = Schemas['HistoryEntryView'];

const KINDS: Record<HistoryEntry['kind'], () => string> = {
  held: m.adminReservations_was_held,
  complimentary: m.adminReservations_was_given,
  box_office: m.adminReservations_was_sold_here,
  extended: m.adminReservations_was_extended,
  seats_changed: m.adminReservations_was_changed,
  payment_failed: m.adminReservations_was_declined,
  paid: m.adminReservations_was_paid,
  mail_sent: m.adminReservations_was_mailed,
  listed: m.adminReservations_was_listed,
  listing_ended: m.adminReservations_was_unlisted,
  transferred: m.adminReservations_was_transferred,
  event_moved: m.adminReservations_was_moved,
  checked_in: m.adminReservations_was_used,
  left_hall: m.adminReservations_was_out,
  re_entered: m.adminReservations_was_back,
  check_in_undone: m.adminReservations_was_undone,
  tickets_cancelled: m.adminReservations_was_part_cancelled,
  cancelled: m.adminReservations_was_cancelled,
  expired: m.adminReservations_was_expired,
  refunded: m.adminReservations_was_refunded,
};

export function historyTitle(entry: HistoryEntry): string {
  return KINDS[entry.kind]?.() ?? entry.kind;
}

/** Amount, seats, tickets, times: whatever belongs to the kind. */
export function historyDetails(entry: HistoryEntry): string {
  const { details, amount, reason } = entry;
  const parts: string[] = [];
  if (typeof amount === 'number') parts.push(won(amount));
  if (details.paymentMethod) parts.push(details.paymentMethod);
  const [before = [], after = []] = [details.previousSeats, details.seats];
  if (before.length > 0) parts.push(`${before.join(', ')} → ${after.join(', ')}`);
  else if (after.length > 0) parts.push(after.join(', '));
  if (details.ticketNumbers?.length) parts.push(details.ticketNumbers.join(', '));
  if (details.door) parts.push(details.door);
  if (details.previousStartsAt && details.startsAt)
    parts.push(`${dateTime(details.previousStartsAt)} → ${dateTime(details.startsAt)}`);
  if (details.mailKind) parts.push(mailKind(details.mailKind));
  if (reason) parts.push(reason);
  return parts.join(' · ');
}

export function historyActor(entry: HistoryEntry): string {
  if (entry.by === 'system') return m.adminReservations_by_system();
  const role =
    entry.by === 'owner' ? m.adminReservations_by_owner() : m.adminReservations_by_admin();
  return entry.userName ? `${entry.userName} (${role})` : role;
}
