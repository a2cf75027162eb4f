/** Reservations as those read them who look after them. */
import { api, call, type Schemas } from '$lib/api/client';
import type { ListPart } from '../pages.svelte';

export type AdminReservation = Schemas['AdminReservationView'];

export interface ReservationFilter {
  readonly status: string | null;
  readonly eventId: string | null;
  readonly userId: string | null;
}

const PART = 20;

export async function readReservations(
  filter: ReservationFilter,
  after: string | null,
): Promise<ListPart<AdminReservation>> {
  const page = after ? Number(after) : 1;
  const query = {
    page,
    limit: PART,
    ...(filter.status && { status: filter.status }),
    ...(filter.eventId && { eventId: filter.eventId }),
    ...(filter.userId && { userId: filter.userId }),
  };
  const part = await call(api.GET('/api/admin/reservations', { params: { query } }));
  const next = page < part.pagination.totalPages ? String(page + 1) : null;
  return { items: part.reservations, next };
}

/** The seats or the ticket types, in one line. */
export function placesOf(reservation: AdminReservation): string {
  const seats = reservation.seats.map((seat) => seat.label);
  const tickets = reservation.items
    .filter(() => seats.length === 0)
    .map((item) => `${item.name} × ${item.quantity}`);
  return [...seats, ...tickets].join(', ') || '–';
}
