/** Seats in words. */
import * as m from '$lib/text/messages';
import type { SeatName } from './hall';

/** 1층 A 3열 12번. */
export function seatLabel(seat: Pick<SeatName, 'section' | 'row' | 'number'>): string {
  return m.seats_label({ section: seat.section, row: seat.row, number: seat.number });
}

/** What is special about it, for those who cannot see the drawing. */
export function seatRemarks(seat: SeatName): string[] {
  const remarks: string[] = [];
  if (seat.isAccessible) remarks.push(m.seats_accessible());
  if (seat.hasRestrictedView) remarks.push(m.seats_restricted());
  return remarks;
}
