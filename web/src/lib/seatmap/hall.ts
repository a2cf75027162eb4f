/**
 * The seats of a hall as flat arrays: where each one is and what it is like. A seat's id is its
 * number in the order of sections, rows and seats, so the layout needs no list of ids.
 */
import type { Schemas } from '$lib/api/client';

export type LayoutView = Schemas['Layout'];

/** Lengths are centimetres. The stage is at (0, 0); y grows away from it, which is down. */
export interface Bounds {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

export interface HallRow {
  readonly section: number;
  readonly label: string;
  readonly firstSeat: number;
  readonly firstNumber: number;
  /** How the numbers go on to the right: 1 or 2, up or down. */
  readonly numberStep: number;
  readonly seats: number;
}

export interface HallSection {
  readonly name: string;
  /** Which grade, as an index of `Hall.grades`. */
  readonly grade: number;
  readonly firstSeat: number;
  readonly seats: number;
  readonly firstRow: number;
  readonly rows: number;
  readonly angle: number;
  readonly seatPitch: number;
  readonly rowPitch: number;
  readonly centreX: number;
  readonly centreY: number;
  /** Corners of the area around its seats: x, y, x, y, … */
  readonly outline: Float32Array;
  readonly bounds: Bounds;
  /** A picture of what is seen from here. */
  readonly viewImageUrl: string | null;
}

export interface Hall {
  readonly seatCount: number;
  readonly grades: readonly string[];
  readonly sections: readonly HallSection[];
  readonly rows: readonly HallRow[];
  readonly x: Float32Array;
  readonly y: Float32Array;
  /** The direction that a seat faces, in radians clockwise. */
  readonly angle: Float32Array;
  readonly rowOf: Uint16Array;
  readonly flags: Uint8Array;
  readonly bounds: Bounds;
  /** The smallest distance between neighbours in a row: what must be visible to tell seats apart. */
  readonly pitch: number;
}

export const ACCESSIBLE = 1;
export const RESTRICTED_VIEW = 2;

const DEFAULT_SEAT_PITCH = 50;
const DEFAULT_ROW_PITCH = 90;
const OUTLINE_STEPS = 6;
/** An outline follows the ends of so many rows at most. */
const OUTLINE_ROWS = 24;

export function makeHall(layout: LayoutView): Hall {
  const seatCount = layout.sections.reduce(
    (sum, section) => sum + section.rows.reduce((seats, row) => seats + row.seats, 0),
    0,
  );
  const hall = {
    seatCount,
    grades: [...new Set(layout.sections.map((section) => section.grade))],
    sections: [] as HallSection[],
    rows: [] as HallRow[],
    x: new Float32Array(seatCount),
    y: new Float32Array(seatCount),
    angle: new Float32Array(seatCount),
    rowOf: new Uint16Array(seatCount),
    flags: new Uint8Array(seatCount),
  };
  let seat = 0;
  for (const section of layout.sections) seat = addSection(hall, section, seat);
  const pitch = Math.min(...hall.sections.map((section) => section.seatPitch));
  return { ...hall, bounds: joinBounds(hall.sections.map((section) => section.bounds)), pitch };
}

type Growing = Omit<Hall, 'bounds' | 'pitch' | 'sections' | 'rows'> & {
  sections: HallSection[];
  rows: HallRow[];
};

/** Adds a section whose first seat has the id `first`; returns the id after its last one. */
function addSection(hall: Growing, section: LayoutView['sections'][number], first: number): number {
  const place = placer(section);
  const seatPitch = section.seatPitch ?? DEFAULT_SEAT_PITCH;
  const index = hall.sections.length;
  const firstRow = hall.rows.length;
  let seat = first;
  section.rows.forEach((row, depth) => {
    const { firstNumber = 1, numberStep = 1 } = row;
    hall.rows.push({
      section: index,
      label: row.label,
      firstSeat: seat,
      firstNumber,
      numberStep,
      seats: row.seats,
    });
    const seatWith = (number: number) => seat + (number - firstNumber) / numberStep;
    for (const number of row.accessible ?? []) hall.flags[seatWith(number)]! |= ACCESSIBLE;
    for (const number of row.restrictedView ?? []) hall.flags[seatWith(number)]! |= RESTRICTED_VIEW;
    const middle = (row.seats - 1) / 2 - (row.offset ?? 0) / seatPitch;
    for (let column = 0; column < row.seats; column++, seat++) {
      const point = place(column - middle, depth);
      hall.x[seat] = point.x;
      hall.y[seat] = point.y;
      hall.angle[seat] = point.angle;
      hall.rowOf[seat] = hall.rows.length - 1;
    }
  });
  const outline = outlineOf(section, place);
  const depth = (section.rows.length - 1) / 2;
  const middle = place((section.rows[Math.floor(depth)]?.offset ?? 0) / seatPitch, depth);
  hall.sections.push({
    name: section.name,
    grade: hall.grades.indexOf(section.grade),
    firstSeat: first,
    seats: seat - first,
    firstRow,
    rows: section.rows.length,
    angle: radians(section.angleDegrees ?? 0),
    seatPitch,
    rowPitch: section.rowPitch ?? DEFAULT_ROW_PITCH,
    centreX: middle.x,
    centreY: middle.y,
    outline,
    bounds: boundsOf(outline),
    viewImageUrl: section.viewImageUrl ?? null,
  });
  return seat;
}

export interface Place {
  readonly x: number;
  readonly y: number;
  readonly angle: number;
}

/** Where the seat is that stands so many seats right of the row's middle, so many rows back. */
export function placer(
  section: Omit<LayoutView['sections'][number], 'rows'>,
): (column: number, row: number) => Place {
  const seatPitch = section.seatPitch ?? DEFAULT_SEAT_PITCH;
  const rowPitch = section.rowPitch ?? DEFAULT_ROW_PITCH;
  const radius = section.curveRadius ?? 0;
  const turn = radians(section.angleDegrees ?? 0);
  const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
  return (column, row) => {
    let x = column * seatPitch;
    let y = row * rowPitch;
    let bend = 0;
    if (radius > 0) {
      const rowRadius = radius + y;
      bend = x / rowRadius;
      x = rowRadius * Math.sin(bend);
      y = rowRadius * Math.cos(bend) - radius;
    }
    return {
      x: (section.x ?? 0) + x * cos - y * sin,
      y: (section.y ?? 0) + x * sin + y * cos,
      angle: turn - bend,
    };
  };
}

function outlineOf(
  section: LayoutView['sections'][number],
  place: ReturnType<typeof placer>,
): Float32Array {
  const seatPitch = section.seatPitch ?? DEFAULT_SEAT_PITCH;
  const last = section.rows.length - 1;
  const corners: number[] = [];
  const add = (column: number, row: number) => {
    const { x, y } = place(column, row);
    corners.push(x, y);
  };
  /** Where a row begins and ends, in seats from the section's middle. */
  const ends = (depth: number): [number, number] => {
    const row = section.rows[depth];
    const [half, middle] = [(row?.seats ?? 1) / 2 + 0.2, (row?.offset ?? 0) / seatPitch];
    return [middle - half, middle + half];
  };
  const [frontLeft, frontRight] = ends(0);
  const [backLeft, backRight] = ends(last);
  for (let step = 0; step <= OUTLINE_STEPS; step++)
    add(frontLeft + ((frontRight - frontLeft) * step) / OUTLINE_STEPS, -0.55);
  const every = Math.max(1, Math.ceil(last / OUTLINE_ROWS));
  for (let depth = every; depth < last; depth += every) add(ends(depth)[1], depth);
  for (let step = OUTLINE_STEPS; step >= 0; step--)
    add(backLeft + ((backRight - backLeft) * step) / OUTLINE_STEPS, last + 0.55);
  for (let depth = Math.floor((last - 1) / every) * every; depth > 0; depth -= every)
    add(ends(depth)[0], depth);
  return Float32Array.from(corners);
}

function boundsOf(points: Float32Array): Bounds {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < points.length; i += 2) {
    const [x, y] = [points[i]!, points[i + 1]!];
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  return { left, top, right, bottom };
}

export function joinBounds(all: readonly Bounds[]): Bounds {
  return {
    left: Math.min(...all.map((one) => one.left)),
    top: Math.min(...all.map((one) => one.top)),
    right: Math.max(...all.map((one) => one.right)),
    bottom: Math.max(...all.map((one) => one.bottom)),
  };
}

function radians(degrees: number): number {
  return (degrees * Math.PI) / 180;
}

/** The number on a seat of a row. */
export function numberOf(row: HallRow, seat: number): number {
  return row.firstNumber + row.numberStep * (seat - row.firstSeat);
}

/** A seat in words: its section, row and number. */
export interface SeatName {
  readonly section: string;
  readonly row: string;
  readonly number: number;
  readonly grade: string;
  readonly isAccessible: boolean;
  readonly hasRestrictedView: boolean;
}

export function seatName(hall: Hall, seat: number): SeatName {
  const row = hall.rows[hall.rowOf[seat]!]!;
  const section = hall.sections[row.section]!;
  const flags = hall.flags[seat]!;
  return {
    section: section.name,
    row: row.label,
    number: numberOf(row, seat),
    grade: hall.grades[section.grade]!,
    isAccessible: (flags & ACCESSIBLE) !== 0,
    hasRestrictedView: (flags & RESTRICTED_VIEW) !== 0,
  };
}

export function gradeOf(hall: Hall, seat: number): number {
  return hall.sections[hall.rows[hall.rowOf[seat]!]!.section]!.grade;
}
