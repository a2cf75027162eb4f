import { describe, expect, it } from 'vitest';
import { makeHall } from '$lib/seatmap/hall';
import { SeatStatuses } from '$lib/seatmap/statuses';
import { closedGrades, type Gate, gateLimit } from './gates';

const gate = (grade: string, quantityMax: number): Gate => ({
  grade,
  ticketTypeId: null,
  quantityMax,
  opensAt: null,
});
const GRADES = ['VIP', 'R'];

describe('gates', () => {
  it('close grades of which the user may take nothing', () => {
    expect(closedGrades([gate('R', 0), gate('VIP', 2)], GRADES)).toEqual(new Set([1]));
    expect(closedGrades([], GRADES).size).toBe(0);
  });

  it('limit what a fan who was told takes together', () => {
    expect(gateLimit([gate('VIP', 2)], ['VIP', 'R'])).toBe(2);
    expect(gateLimit([gate('VIP', 2)], ['R'])).toBe(Infinity);
  });

  it('make free seats of closed grades look taken', () => {
    const section = (grade: string) => ({ name: grade, grade, rows: [{ label: '1', seats: 2 }] });
    const hall = makeHall({ sections: GRADES.map(section) } as never);
    const statuses = new SeatStatuses(hall);
    statuses.close(new Set([1]));
    expect([0, 1, 2, 3].map((seat) => statuses.isFree(seat))).toEqual([true, true, false, false]);
    expect([statuses.freeInGrade(1), statuses.freeInSection(1)]).toEqual([0, 0]);
    expect([statuses.returnedInGrade(1), statuses.isClosed(2)]).toEqual([2, true]);
    statuses.close(new Set());
    expect(statuses.isFree(2)).toBe(true);
  });
});
