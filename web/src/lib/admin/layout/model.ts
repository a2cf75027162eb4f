/**
 * A layout as the editor holds it: every field has a value, and sections have a key that stays
 * when they are renamed or reordered. Values are never changed in place, so that undo can keep
 * old layouts for the price of what differs.
 */
import type { LayoutView } from '$lib/seatmap/hall';

export interface EditorRow {
  readonly label: string;
  readonly seats: number;
  /** The number on the leftmost seat. */
  readonly firstNumber: number;
  /** How the numbers go on to the right: 1, -1, 2 or -2. */
  readonly numberStep: number;
  /** How far its middle is right of the section's middle, in centimetres. */
  readonly offset: number;
  readonly accessible: readonly number[];
  readonly restrictedView: readonly number[];
}

export interface EditorSection {
  readonly key: number;
  readonly name: string;
  readonly grade: string;
  readonly x: number;
  readonly y: number;
  readonly angleDegrees: number;
  readonly curveRadius: number;
  readonly seatPitch: number;
  readonly rowPitch: number;
  /** The picture of what is seen from here. */
  readonly viewImageUrl: string | null;
  readonly rows: readonly EditorRow[];
}

export interface EditorLayout {
  readonly sections: readonly EditorSection[];
}

export const DEFAULT_SEAT_PITCH = 50;
export const DEFAULT_ROW_PITCH = 90;
export const EMPTY_LAYOUT: EditorLayout = { sections: [] };

let lastKey = 0;
export function nextKey(): number {
  lastKey += 1;
  return lastKey;
}

export function makeRow(label: string, seats: number, more: Partial<EditorRow> = {}): EditorRow {
  return {
    label,
    seats,
    firstNumber: 1,
    numberStep: 1,
    offset: 0,
    accessible: [],
    restrictedView: [],
    ...more,
  };
}

export function makeSection(
  name: string,
  grade: string,
  rows: readonly EditorRow[],
  more: Partial<EditorSection> = {},
): EditorSection {
  return {
    key: nextKey(),
    name,
    grade,
    x: 0,
    y: 0,
    angleDegrees: 0,
    curveRadius: 0,
    seatPitch: DEFAULT_SEAT_PITCH,
    rowPitch: DEFAULT_ROW_PITCH,
    viewImageUrl: null,
    rows,
    ...more,
  };
}

export function fromWire(layout: LayoutView): EditorLayout {
  const sections = layout.sections.map(({ name, grade, rows, ...shape }) =>
    makeSection(
      name,
      grade,
      rows.map(({ label, seats, ...more }) => makeRow(label, seats, more)),
      shape,
    ),
  );
  return { sections };
}

/** What the catalogue stores, field by field in its order; usual values of rows are left out. */
export function toWire(layout: EditorLayout): LayoutView {
  return {
    sections: layout.sections.map((section) => ({
      name: section.name,
      grade: section.grade,
      x: section.x,
      y: section.y,
      angleDegrees: section.angleDegrees,
      curveRadius: section.curveRadius,
      seatPitch: section.seatPitch,
      rowPitch: section.rowPitch,
      ...(section.viewImageUrl && { viewImageUrl: section.viewImageUrl }),
      rows: section.rows.map((row) => ({
        label: row.label,
        seats: row.seats,
        ...(row.firstNumber !== 1 && { firstNumber: row.firstNumber }),
        ...(row.numberStep !== 1 && { numberStep: row.numberStep }),
        ...(row.offset !== 0 && { offset: row.offset }),
        ...(row.accessible.length > 0 && { accessible: [...row.accessible] }),
        ...(row.restrictedView.length > 0 && { restrictedView: [...row.restrictedView] }),
      })),
    })),
  };
}

/** Whether two layouts would be stored alike. */
export function isSameLayout(a: EditorLayout, b: EditorLayout): boolean {
  return a === b || JSON.stringify(toWire(a)) === JSON.stringify(toWire(b));
}

export function seatCount(layout: EditorLayout): number {
  return layout.sections.reduce((sum, section) => sum + seatsOf(section), 0);
}

export function seatsOf(section: EditorSection): number {
  return section.rows.reduce((sum, row) => sum + row.seats, 0);
}

export function numberAt(row: EditorRow, index: number): number {
  return row.firstNumber + row.numberStep * index;
}

/** Where the seat with a number is in its row; null if there is none. */
export function indexOfNumber(row: EditorRow, number: number): number | null {
  const index = (number - row.firstNumber) / row.numberStep;
  return Number.isInteger(index) && index >= 0 && index < row.seats ? index : null;
}

/** The grades in the order in which they first appear. */
export function gradesOf(layout: EditorLayout): string[] {
  return [...new Set(layout.sections.map((section) => section.grade))];
}

/** A name that no section has: the wish itself, or with the next free number behind it. */
export function freeName(layout: EditorLayout, wish: string): string {
  const taken = new Set(layout.sections.map((section) => section.name));
  if (!taken.has(wish)) return wish;
  const stem = wish.replace(/ \d+$/, '');
  for (let number = 2; ; number++) {
    const name = `${stem} ${number}`;
    if (!taken.has(name)) return name;
  }
}
