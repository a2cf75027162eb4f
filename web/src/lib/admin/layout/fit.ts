/** Finds the shape of a section from where its seats are: straight rows, or arcs around a point. */
import { normalAngle, type Point } from './geometry';
import { DEFAULT_ROW_PITCH, DEFAULT_SEAT_PITCH, type EditorSection } from './model';

export interface FittedShape {
  readonly shape: Pick<
    EditorSection,
    'x' | 'y' | 'angleDegrees' | 'curveRadius' | 'seatPitch' | 'rowPitch'
  >;
  /** How far the rows are moved to the right. */
  readonly offsets: readonly number[];
  /** Whether the seats were listed from right to left, seen from the audience. */
  readonly isReversed: boolean;
}

/** A row that is bent less than this is straight. */
const STRAIGHT_CM = 2;

/** The rows from front to back, each with its seats in order. */
export function fitShape(rows: readonly (readonly Point[])[]): FittedShape {
  const longest = rows.reduce((best, row) => (row.length > best.length ? row : best), rows[0]!);
  const circle = longest.length >= 3 ? circleThrough(longest) : null;
  const fitted = circle ? fitArcs(rows, longest, circle) : fitLines(rows, longest);
  if (fitted.shape.rowPitch > 0) return fitted;
  return { ...fitted, shape: { ...fitted.shape, rowPitch: DEFAULT_ROW_PITCH } };
}

function middle(row: readonly Point[]): Point {
  const [first, last] = [row[0]!, row.at(-1)!];
  return { x: (first.x + last.x) / 2, y: (first.y + last.y) / 2 };
}

function fitLines(rows: readonly (readonly Point[])[], longest: readonly Point[]): FittedShape {
  const front = middle(rows[0]!);
  const back = middle(rows.at(-1)!);
  let { x: dx, y: dy } =
    longest.length > 1
      ? { x: longest.at(-1)!.x - longest[0]!.x, y: longest.at(-1)!.y - longest[0]!.y }
      : { x: back.y - front.y, y: front.x - back.x };
  if (dx === 0 && dy === 0) dx = 1;
  const length = Math.hypot(dx, dy);
  // Away from the stage is behind: where the last row is, or, for a single row, the row itself.
  const behind = rows.length > 1 ? { x: back.x - front.x, y: back.y - front.y } : front;
  const isReversed = dx * behind.y - dy * behind.x < 0;
  if (isReversed) [dx, dy] = [-dx, -dy];
  const angleDegrees = normalAngle((Math.atan2(dy, dx) * 180) / Math.PI);
  const turn = (angleDegrees * Math.PI) / 180;
  const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
  const depth = (behind.y * cos - behind.x * sin) / Math.max(1, rows.length - 1);
  return {
    shape: {
      x: Math.round(front.x),
      y: Math.round(front.y),
      angleDegrees,
      curveRadius: 0,
      seatPitch:
        longest.length > 1 ? Math.round(length / (longest.length - 1)) : DEFAULT_SEAT_PITCH,
      rowPitch: rows.length > 1 ? Math.round(depth) : DEFAULT_ROW_PITCH,
    },
    offsets: rows.map((row) => {
      const { x, y } = middle(row);
      return Math.round((x - front.x) * cos + (y - front.y) * sin) + 0;
    }),
    isReversed,
  };
}

/** The middle of the circle through the first, the middle and the last seat; null if straight. */
function circleThrough(row: readonly Point[]): Point | null {
  const [a, b, c] = [row[0]!, row[Math.floor(row.length / 2)]!, row.at(-1)!];
  const cross = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
  const chord = Math.hypot(c.x - a.x, c.y - a.y);
  if (chord === 0 || Math.abs(cross) / chord < STRAIGHT_CM) return null;
  const square = (point: Point) => point.x ** 2 + point.y ** 2;
  const d = 2 * (a.x * (b.y - c.y) + b.x * (c.y - a.y) + c.x * (a.y - b.y));
  return {
    x: (square(a) * (b.y - c.y) + square(b) * (c.y - a.y) + square(c) * (a.y - b.y)) / d,
    y: (square(a) * (c.x - b.x) + square(b) * (a.x - c.x) + square(c) * (b.x - a.x)) / d,
  };
}

function fitArcs(
  rows: readonly (readonly Point[])[],
  longest: readonly Point[],
  centre: Point,
): FittedShape {
  const direction = (point: Point) => Math.atan2(point.x - centre.x, point.y - centre.y);
  const radius = (row: readonly Point[]) => Math.hypot(row[0]!.x - centre.x, row[0]!.y - centre.y);
  const difference = (from: number, to: number) =>
    Math.atan2(Math.sin(to - from), Math.cos(to - from));
  const middleOf = (row: readonly Point[]) => direction(row[Math.floor(row.length / 2)]!);
  /** The direction of a row's middle, also if it has an even number of seats. */
  const middleDirection = (row: readonly Point[]) => {
    const near = middleOf(row);
    const [first, last] = [direction(row[0]!), direction(row.at(-1)!)];
    return near + (difference(near, first) + difference(near, last)) / 2;
  };
  const near = middleOf(longest);
  const span =
    difference(direction(longest[0]!), near) + difference(near, direction(longest.at(-1)!));
  const frontRadius = radius(rows[0]!);
  const angleDegrees = normalAngle((-middleDirection(rows[0]!) * 180) / Math.PI);
  const axis = (-angleDegrees * Math.PI) / 180;
  const depth = (radius(rows.at(-1)!) - frontRadius) / Math.max(1, rows.length - 1);
  return {
    shape: {
      x: Math.round(centre.x + frontRadius * Math.sin(axis)),
      y: Math.round(centre.y + frontRadius * Math.cos(axis)),
      angleDegrees,
      curveRadius: Math.round(frontRadius),
      seatPitch: Math.round((radius(longest) * Math.abs(span)) / (longest.length - 1)),
      rowPitch: rows.length > 1 ? Math.round(depth) : DEFAULT_ROW_PITCH,
    },
    offsets: rows.map(
      (row) => Math.round(radius(row) * difference(axis, middleDirection(row))) + 0,
    ),
    isReversed: span < 0,
  };
}
