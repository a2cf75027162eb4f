/** What is paid at a checkout: a reservation, a membership or a transfer, shown in one shape. */
import { api, call, type Schemas } from '$lib/api/client';
import { ApiFailure } from '$lib/api/failure';
import { dateTime } from '$lib/format';
import type { Payable as PayableKind } from '$lib/links';
import { seatLabel } from '$lib/seatmap/words';
import * as m from '$lib/text/messages';

export type PayableState = 'open' | 'paying' | 'paid' | 'expired' | 'gone' | 'own';

export interface PayableLine {
  readonly text: string;
  readonly amount: number;
}

export interface Payable {
  readonly kind: PayableKind;
  readonly id: string;
  readonly title: string;
  readonly note: string;
  readonly lines: readonly PayableLine[];
  readonly amount: number;
  readonly state: PayableState;
  /** When the hold ends. */
  readonly expiresAt: string | null;
  /** More time that the hold can be given, for the version that its token names. */
  readonly extension: { readonly seconds: number; readonly fencingToken: number } | null;
  /** What cancelling will cost by date; empty if that is not decided by dates. */
  readonly terms: readonly Schemas['CancellationTerm'][];
  readonly eventId: string | null;
  readonly isSeated: boolean;
  /** Where to look at what was bought. */
  readonly ownPath: string;
}

export function isPayableKind(kind: string | undefined): kind is PayableKind {
  return kind === 'reservation' || kind === 'membership' || kind === 'transfer';
}

export async function loadPayable(kind: PayableKind, id: string): Promise<Payable> {
  if (kind === 'membership') return loadMembership(id);
  if (kind === 'transfer') {
    const path = { id };
    const { transfer } = await call(api.GET('/api/transfers/{id}', { params: { path } }));
    return ofTransfer(transfer);
  }
  const { reservation } = await call(
    api.GET('/api/reservations/{id}', { params: { path: { id } } }),
  );
  return ofReservation(reservation);
}

export function ofReservation(reservation: Schemas['ReservationDetailView']): Payable {
  const lines = itemLines(reservation);
  if (reservation.bookingFee > 0)
    lines.push({ text: m.checkout_booking_fee(), amount: reservation.bookingFee });
  return {
    kind: 'reservation',
    id: reservation.id,
    title: reservation.eventTitle,
    note: `${dateTime(reservation.eventStartsAt)} · ${reservation.venueName}`,
    lines,
    amount: reservation.totalAmount,
    state: reservationState(reservation),
    expiresAt: reservation.expiresAt,
    extension: extensionOf(reservation),
    terms: reservation.cancellationTerms,
    eventId: reservation.eventId,
    isSeated: reservation.seats.length > 0,
    ownPath: `/my/reservations/${reservation.id}`,
  };
}

function extensionOf(reservation: Schemas['ReservationDetailView']): Payable['extension'] {
  const { extensionSeconds: seconds, fencingToken } = reservation;
  return seconds && typeof fencingToken === 'number' ? { seconds, fencingToken } : null;
}

function reservationState(
  reservation: Pick<Schemas['ReservationView'], 'status' | 'paymentInProgress'>,
): PayableState {
  if (reservation.status === 'confirmed') return 'paid';
  if (reservation.status === 'expired') return 'expired';
  if (reservation.status !== 'pending') return 'gone';
  return reservation.paymentInProgress ? 'paying' : 'open';
}

export function ofTransfer(transfer: Schemas['TransferView']): Payable {
  const lines = itemLines(transfer);
  lines.push({
    text: m.checkout_transfer_fee({ percent: transfer.transferFeePercent }),
    amount: transfer.transferFee,
  });
  return {
    kind: 'transfer',
    id: transfer.id,
    title: transfer.eventTitle,
    note: `${dateTime(transfer.eventStartsAt)} · ${transfer.venueName}`,
    lines,
    amount: transfer.totalPrice,
    state: transferState(transfer),
    expiresAt: null,
    extension: null,
    terms: [],
    eventId: transfer.eventId,
    isSeated: transfer.seats.length > 0,
    ownPath: transfer.reservationId
      ? `/my/reservations/${transfer.reservationId}`
      : '/my/reservations',
  };
}

function transferState(transfer: Schemas['TransferView']): PayableState {
  if (transfer.isMine) return 'own';
  if (transfer.status === 'completed') return transfer.reservationId ? 'paid' : 'gone';
  if (transfer.status !== 'listed') return 'gone';
  return transfer.isBeingPaid ? 'paying' : 'open';
}

async function loadMembership(id: string): Promise<Payable> {
  const query = { limit: 100 };
  const { memberships } = await call(api.GET('/api/memberships/my', { params: { query } }));
  const membership = memberships.find((one) => one.id === id);
  if (!membership) throw new ApiFailure(404, { code: 'MEMBERSHIP_NOT_FOUND' });
  const isOpen = membership.status === 'pending' || membership.isPaymentPending;
  return {
    kind: 'membership',
    id,
    title: m.checkout_membership({ artist: membership.artistName }),
    note: m.checkout_membership_year(),
    lines: [{ text: m.checkout_membership_line(), amount: membership.membershipPrice }],
    amount: membership.membershipPrice,
    state: isOpen ? 'open' : 'paid',
    expiresAt: null,
    extension: null,
    terms: [],
    eventId: null,
    isSeated: false,
    ownPath: `/artists/${membership.artistId}`,
  };
}

function itemLines(from: Pick<Schemas['ReservationView'], 'seats' | 'items'>): PayableLine[] {
  const seats = from.seats.map((seat) => ({
    text: `${seatLabel(seat)} (${seat.grade})`,
    amount: seat.price,
  }));
  const items = from.items.map((item) => ({
    text: m.checkout_item({ name: item.name, count: item.quantity }),
    amount: item.subtotal,
  }));
  // A hold of seats lists its grades as items too; each thing is shown once.
  return seats.length > 0 ? seats : items;
}
