/** Which seats are free, as the server tells it: two bits per seat, then changes. */
import type { Schemas } from '$lib/api/client';
import { gradeOf, type Hall } from './hall';

export const AVAILABLE = 0;
export const HELD = 1;
export const SOLD = 2;
/** Kept out of the sale by the organiser. */
export const BLOCKED = 3;

type SeatMapView = Pick<Schemas['SeatMapView'], 'version' | 'statuses' | 'changes'>;

export interface SeatChange {
  readonly seat: number;
  readonly from: number;
  readonly to: number;
}

export class SeatStatuses {
  readonly #hall: Hall;
  readonly #status: Uint8Array;
  readonly #freeBySection: Uint32Array;
  /** Grades of which this user may take nothing now, although seats are free. */
  #closed: ReadonlySet<number> = new Set();
  version = -1;

  constructor(hall: Hall) {
    this.#hall = hall;
    this.#status = new Uint8Array(hall.seatCount);
    this.#freeBySection = Uint32Array.from(hall.sections, (section) => section.seats);
  }

  of(seat: number): number {
    return this.#status[seat]!;
  }

  close(grades: ReadonlySet<number>): void {
    this.#closed = grades;
  }

  /** Nobody has it, but it is kept for others. */
  isClosed(seat: number): boolean {
    return (
      this.#closed.size > 0 &&
      this.#status[seat] === AVAILABLE &&
      this.#closed.has(gradeOf(this.#hall, seat))
    );
  }

  isFree(seat: number): boolean {
    return this.#status[seat] === AVAILABLE && !this.isClosed(seat);
  }

  freeInSection(section: number): number {
    const isClosed = this.#closed.has(this.#hall.sections[section]!.grade);
    return isClosed ? 0 : this.#freeBySection[section]!;
  }

  freeInGrade(grade: number): number {
    return this.#closed.has(grade) ? 0 : this.returnedInGrade(grade);
  }

  /** Seats that nobody has, also those that are kept for others. */
  returnedInGrade(grade: number): number {
    return this.#hall.sections.reduce(
      (sum, section, index) => (section.grade === grade ? sum + this.#freeBySection[index]! : sum),
      0,
    );
  }

  /**
   * Takes an answer of the seat map and returns what is different now. All statuses replace what
   * is known whatever their version; changes with an older version are not news.
   */
  apply(map: SeatMapView): SeatChange[] {
    const changes: SeatChange[] = [];
    if (typeof map.statuses === 'string') {
      const bytes = Uint8Array.from(atob(map.statuses), (character) => character.charCodeAt(0));
      for (let seat = 0; seat < this.#hall.seatCount; seat++)
        this.#set(seat, (bytes[seat >> 2]! >> ((seat & 3) * 2)) & 3, changes);
      this.version = map.version;
    } else if (map.version >= this.version) {
      for (const [seat, to] of map.changes ?? [])
        if (seat !== undefined && to !== undefined) this.#set(seat, to, changes);
      this.version = map.version;
    }
    return changes;
  }

  #set(seat: number, to: number, changes: SeatChange[]): void {
    const from = this.#status[seat];
    if (from === undefined || from === to) return;
    this.#status[seat] = to;
    const section = this.#hall.rows[this.#hall.rowOf[seat]!]!.section;
    if (from === AVAILABLE) this.#freeBySection[section]! -= 1;
    if (to === AVAILABLE) this.#freeBySection[section]! += 1;
    changes.push({ seat, from, to });
  }
}
