/** House seats: what is chosen, what it costs, and what was refused. */
import type { Schemas } from '$lib/api/client';
import { ApiFailure } from '$lib/api/failure';
import { type Hall, seatName } from '$lib/seatmap/hall';
import { AVAILABLE, BLOCKED, type SeatStatuses } from '$lib/seatmap/statuses';
import { seatLabel } from '$lib/seatmap/words';
import * as m from '$lib/text/messages';

export type HouseAction = 'block' | 'release' | 'give' | 'sell';
export type Blocked = Schemas['BlockedSeatsView'];
export type Issued = Schemas['HouseReservationView'];
export type TicketType = Schemas['TicketTypeStock'];

/** Free and blocked seats can be chosen; others belong to somebody. */
export function isChoosable(statuses: SeatStatuses, seat: number): boolean {
  const status = statuses.of(seat);
  return status === AVAILABLE || status === BLOCKED;
}

/** What can be done with the chosen seats: only free ones are blocked, only blocked ones released. */
export function mayDo(
  action: HouseAction,
  statuses: SeatStatuses,
  seats: ReadonlySet<number>,
): boolean {
  const needed = { block: AVAILABLE, release: BLOCKED, give: null, sell: null }[action];
  return (
    seats.size > 0 && (needed === null || [...seats].every((seat) => statuses.of(seat) === needed))
  );
}

export function nameOf(hall: Hall, seat: number): string {
  return seatLabel(seatName(hall, seat));
}

export function stateWord(statuses: SeatStatuses, seat: number): string {
  if (statuses.of(seat) === AVAILABLE) return m.adminHouse_free();
  return statuses.of(seat) === BLOCKED ? m.adminHouse_blocked() : m.seats_taken();
}

/** The seats that a refusal names. */
export function refusedSeats(error: unknown): number[] {
  const ids = ApiFailure.from(error).fields.seatIds;
  return Array.isArray(ids) ? ids.filter((id): id is number => typeof id === 'number') : [];
}
