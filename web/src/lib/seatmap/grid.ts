/** A uniform grid over the seats: which ones are in a rectangle, which one is nearest. */
import type { Bounds, Hall } from './hall';

const SEATS_PER_CELL = 32;

export class SeatGrid {
  readonly #hall: Hall;
  readonly #columns: number;
  readonly #rows: number;
  readonly #cell: number;
  /** The seats of cell `i` are `#seats[#starts[i]]` up to `#seats[#starts[i + 1]]`. */
  readonly #starts: Uint32Array;
  readonly #seats: Uint32Array;

  constructor(hall: Hall) {
    this.#hall = hall;
    const { left, top, right, bottom } = hall.bounds;
    const [width, height] = [Math.max(1, right - left), Math.max(1, bottom - top)];
    const cells = Math.max(1, hall.seatCount / SEATS_PER_CELL);
    this.#cell = Math.max(1, Math.sqrt((width * height) / cells));
    this.#columns = Math.ceil(width / this.#cell) + 1;
    this.#rows = Math.ceil(height / this.#cell) + 1;
    this.#starts = new Uint32Array(this.#columns * this.#rows + 1);
    this.#seats = new Uint32Array(hall.seatCount);
    this.#fill();
  }

  #fill(): void {
    const { seatCount } = this.#hall;
    for (let seat = 0; seat < seatCount; seat++) this.#starts[this.#cellOf(seat) + 1]! += 1;
    for (let i = 1; i < this.#starts.length; i++) this.#starts[i]! += this.#starts[i - 1]!;
    const next = this.#starts.slice();
    for (let seat = 0; seat < seatCount; seat++) {
      const cell = this.#cellOf(seat);
      this.#seats[next[cell]!] = seat;
      next[cell]! += 1;
    }
  }

  #column(x: number): number {
    const column = Math.floor((x - this.#hall.bounds.left) / this.#cell);
    return Math.min(this.#columns - 1, Math.max(0, column));
  }

  #row(y: number): number {
    const row = Math.floor((y - this.#hall.bounds.top) / this.#cell);
    return Math.min(this.#rows - 1, Math.max(0, row));
  }

  #cellOf(seat: number): number {
    return this.#row(this.#hall.y[seat]!) * this.#columns + this.#column(this.#hall.x[seat]!);
  }

  /** Calls back for each seat in the rectangle, in no particular order. */
  forEachIn(area: Bounds, visit: (seat: number) => void): void {
    const { x, y } = this.#hall;
    const [fromColumn, toColumn] = [this.#column(area.left), this.#column(area.right)];
    for (let row = this.#row(area.top); row <= this.#row(area.bottom); row++) {
      const from = this.#starts[row * this.#columns + fromColumn]!;
      const to = this.#starts[row * this.#columns + toColumn + 1]!;
      for (let i = from; i < to; i++) {
        const seat = this.#seats[i]!;
        const [seatX, seatY] = [x[seat]!, y[seat]!];
        if (seatX < area.left || seatX > area.right) continue;
        if (seatY < area.top || seatY > area.bottom) continue;
        visit(seat);
      }
    }
  }

  /** The nearest seat within a distance that `accept` allows. */
  nearest(
    x: number,
    y: number,
    distanceMax: number,
    accept: (seat: number) => boolean = () => true,
  ): number | null {
    let found: number | null = null;
    let best = distanceMax * distanceMax;
    const area = {
      left: x - distanceMax,
      right: x + distanceMax,
      top: y - distanceMax,
      bottom: y + distanceMax,
    };
    this.forEachIn(area, (seat) => {
      const distance = (this.#hall.x[seat]! - x) ** 2 + (this.#hall.y[seat]! - y) ** 2;
      if (distance > best || !accept(seat)) return;
      best = distance;
      found = seat;
    });
    return found;
  }

  /**
   * The next seat in a direction, for arrow keys: little to go and little to the side. It looks
   * further and further until something is found or the hall ends.
   */
  neighbour(seat: number, stepX: number, stepY: number): number | null {
    const [x, y] = [this.#hall.x[seat]!, this.#hall.y[seat]!];
    const { left, right, top, bottom } = this.#hall.bounds;
    const longest = Math.max(right - left, bottom - top);
    for (let reach = 4 * this.#hall.pitch; ; reach *= 4) {
      let found: number | null = null;
      let best = Infinity;
      const area = { left: x - reach, right: x + reach, top: y - reach, bottom: y + reach };
      this.forEachIn(area, (other) => {
        const [dx, dy] = [this.#hall.x[other]! - x, this.#hall.y[other]! - y];
        const along = dx * stepX + dy * stepY;
        const aside = Math.abs(dx * stepY) + Math.abs(dy * stepX);
        if (along < this.#hall.pitch / 4 || aside > along) return;
        const cost = along + 2 * aside;
        if (cost >= best) return;
        best = cost;
        found = other;
      });
      if (found !== null || reach > longest) return found;
    }
  }
}
