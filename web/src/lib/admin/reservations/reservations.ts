/** Reservations as those read them who look after them. */
import { api, call, type Schemas } from '$lib/api/client';
import type { ListPart } from '../pages.svelte';

export type AdminReservation = Schemas['AdminReservationView'];

export interface ReservationFilter {
  /** A number, or a whole address, name or phone number. */
  readonly q: string | null;
  readonly status: string | null;
  readonly day: string | null;
  readonly eventId: string | null;
  readonly userId: string | null;
}

export interface ReservationPart extends ListPart<AdminReservation> {
  /** False while names and addresses cannot be asked for. */
  readonly hasBuyers: boolean;
}

const PART = 20;

export async function readReservations(
  filter: ReservationFilter,
  cursor: string | null,
): Promise<ReservationPart> {
  const wanted = Object.entries({ ...filter, cursor }).filter(([, value]) => value);
  const query = { limit: PART, ...Object.fromEntries(wanted) };
  const part = await call(api.GET('/api/admin/reservations', { params: { query } }));
  return {
    items: part.reservations,
    next: part.nextCursor ?? null,
    hasBuyers: part.buyersAvailable,
  };
}

/** The seats or the ticket types, in one line. */
export function placesOf(reservation: AdminReservation): string {
  const seats = reservation.seats.map((seat) => seat.label);
  const tickets = reservation.items
    .filter(() => seats.length === 0)
    .map((item) => `${item.name} × ${item.quantity}`);
  return [...seats, ...tickets].join(', ') || '–';
}
