/** Shapes: sections from rectangles and polygons, moves, turns and mirrors. Lengths are cm. */
import type { Bounds } from '$lib/seatmap/hall';
import { placer } from '$lib/seatmap/hall';
import type { EditorRow, EditorSection } from './model';
import { DEFAULT_ROW_PITCH, DEFAULT_SEAT_PITCH, makeRow, makeSection, numberAt } from './model';
import { ROWS_MAX, SEATS_PER_ROW_MAX } from './validate';

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface NewSection {
  readonly name: string;
  readonly grade: string;
  readonly seatPitch?: number;
  readonly rowPitch?: number;
}

/** As many rows and seats as fit between two corners. */
export function rectangleSection(from: Point, to: Point, wish: NewSection): EditorSection {
  const { seatPitch = DEFAULT_SEAT_PITCH, rowPitch = DEFAULT_ROW_PITCH } = wish;
  const [left, right] = [Math.min(from.x, to.x), Math.max(from.x, to.x)];
  const [top, bottom] = [Math.min(from.y, to.y), Math.max(from.y, to.y)];
  const seats = limited(Math.floor((right - left) / seatPitch), SEATS_PER_ROW_MAX);
  const count = limited(Math.floor((bottom - top) / rowPitch), ROWS_MAX);
  const rows = Array.from({ length: count }, (_, index) => makeRow(String(index + 1), seats));
  return makeSection(wish.name, wish.grade, rows, {
    x: Math.round((left + right) / 2),
    y: Math.round(top + rowPitch / 2),
    seatPitch,
    rowPitch,
  });
}

/** Rows across a polygon, each as long as the polygon is wide there; null if none fits. */
export function polygonSection(corners: readonly Point[], wish: NewSection): EditorSection | null {
  const { seatPitch = DEFAULT_SEAT_PITCH, rowPitch = DEFAULT_ROW_PITCH } = wish;
  const top = Math.min(...corners.map((corner) => corner.y));
  const bottom = Math.max(...corners.map((corner) => corner.y));
  const lines: { left: number; right: number }[] = [];
  const count = Math.min(ROWS_MAX, Math.floor((bottom - top) / rowPitch));
  for (let index = 0; index < count; index++)
    lines.push(widest(crossings(corners, top + (index + 0.5) * rowPitch)));
  const hasSeat = lines.map((line) => line.right - line.left >= seatPitch);
  const [first, last] = [hasSeat.indexOf(true), hasSeat.lastIndexOf(true)];
  if (first === -1) return null;
  const used = lines.slice(first, last + 1);
  const x = Math.round(
    (Math.min(...used.map((line) => line.left)) + Math.max(...used.map((line) => line.right))) / 2,
  );
  const rows = used.map(({ left, right }, index) =>
    makeRow(String(index + 1), limited(Math.floor((right - left) / seatPitch), SEATS_PER_ROW_MAX), {
      offset: Math.round((left + right) / 2 - x),
    }),
  );
  return makeSection(wish.name, wish.grade, rows, {
    x,
    y: Math.round(top + (first + 0.5) * rowPitch),
    seatPitch,
    rowPitch,
  });
}

/** Where a horizontal line enters and leaves a polygon. */
function crossings(corners: readonly Point[], y: number): number[] {
  const found: number[] = [];
  corners.forEach((from, index) => {
    const to = corners[(index + 1) % corners.length]!;
    if (from.y > y !== to.y > y)
      found.push(from.x + ((y - from.y) * (to.x - from.x)) / (to.y - from.y));
  });
  return found.sort((a, b) => a - b);
}

function widest(borders: readonly number[]): { left: number; right: number } {
  let best = { left: 0, right: 0 };
  for (let i = 0; i + 1 < borders.length; i += 2)
    if (borders[i + 1]! - borders[i]! > best.right - best.left)
      best = { left: borders[i]!, right: borders[i + 1]! };
  return best;
}

function limited(count: number, max: number): number {
  return Math.min(max, Math.max(1, count));
}

export function moved(section: EditorSection, dx: number, dy: number): EditorSection {
  return { ...section, x: Math.round(section.x + dx), y: Math.round(section.y + dy) };
}

/** Turns a section around a point, clockwise. */
export function turned(section: EditorSection, around: Point, degrees: number): EditorSection {
  const angle = (degrees * Math.PI) / 180;
  const [dx, dy] = [section.x - around.x, section.y - around.y];
  return {
    ...section,
    x: Math.round(around.x + dx * Math.cos(angle) - dy * Math.sin(angle)),
    y: Math.round(around.y + dx * Math.sin(angle) + dy * Math.cos(angle)),
    angleDegrees: normalAngle(section.angleDegrees + degrees),
  };
}

/** The same direction between -180 and 180 degrees. */
export function normalAngle(degrees: number): number {
  const turn = ((Math.round(degrees) % 360) + 360) % 360;
  return turn > 180 ? turn - 360 : turn;
}

/** Mirrors a section at the vertical line through `x`; the numbers are mirrored with the seats. */
export function mirrored(section: EditorSection, x: number): EditorSection {
  return {
    ...section,
    x: Math.round(2 * x - section.x),
    angleDegrees: normalAngle(-section.angleDegrees),
    rows: section.rows.map(mirroredRow),
  };
}

/** What a seat is like goes with its number, so only the order changes. */
function mirroredRow(row: EditorRow): EditorRow {
  return {
    ...row,
    firstNumber: numberAt(row, row.seats - 1),
    numberStep: -row.numberStep,
    offset: row.offset === 0 ? 0 : -row.offset,
  };
}

/** The rectangle around the seats of a section, with half a pitch around. */
export function sectionBounds(section: EditorSection): Bounds {
  const place = placer(section);
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  section.rows.forEach((row, depth) => {
    const middle = row.offset / section.seatPitch;
    // The ends and the middle: between them an arc has no further extreme in usual halls.
    for (const column of [-row.seats / 2, 0, row.seats / 2])
      for (const back of [depth - 0.5, depth + 0.5]) {
        const { x, y } = place(middle + column, back);
        left = Math.min(left, x);
        right = Math.max(right, x);
        top = Math.min(top, y);
        bottom = Math.max(bottom, y);
      }
  });
  if (section.rows.length === 0)
    return { left: section.x, right: section.x, top: section.y, bottom: section.y };
  return { left, top, right, bottom };
}

export function boundsAround(sections: readonly EditorSection[]): Bounds {
  const all = sections.map(sectionBounds);
  return {
    left: Math.min(...all.map((one) => one.left)),
    top: Math.min(...all.map((one) => one.top)),
    right: Math.max(...all.map((one) => one.right)),
    bottom: Math.max(...all.map((one) => one.bottom)),
  };
}

export function middleOf(bounds: Bounds): Point {
  return { x: (bounds.left + bounds.right) / 2, y: (bounds.top + bounds.bottom) / 2 };
}
