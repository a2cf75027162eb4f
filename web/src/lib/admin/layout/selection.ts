/**
 * What is selected: whole sections, whole rows, or single seats. Null stands for "all of it", so
 * a hall of 50,000 seats is selected by a few entries.
 */
import type { Hall } from '$lib/seatmap/hall';
import type { EditorLayout, EditorSection } from './model';

export type Level = 'sections' | 'rows' | 'seats';
export type RowPart = ReadonlySet<number> | null;
export type SectionPart = ReadonlyMap<number, RowPart> | null;
/** By the key of a section, then the index of a row, then the index of a seat. */
export type Selection = ReadonlyMap<number, SectionPart>;

export const NOTHING: Selection = new Map();

/** One thing that can be selected. */
export interface Target {
  readonly key: number;
  readonly row?: number;
  readonly seat?: number;
}

export function isSelected(selection: Selection, key: number, row: number, seat: number): boolean {
  const part = selection.get(key);
  if (part === undefined) return false;
  if (part === null) return true;
  const rowPart = part.get(row);
  return rowPart === null || (rowPart?.has(seat) ?? false);
}

export function isTargetSelected(selection: Selection, target: Target): boolean {
  const part = selection.get(target.key);
  if (part === undefined) return false;
  if (part === null) return true;
  if (target.row === undefined) return false;
  const rowPart = part.get(target.row);
  if (rowPart === undefined) return false;
  return rowPart === null || (target.seat !== undefined && rowPart.has(target.seat));
}

export function only(target: Target): Selection {
  return withTarget(NOTHING, target);
}

/** The selection and one thing more. */
export function withTarget(selection: Selection, target: Target): Selection {
  const result = new Map(selection);
  const part = result.get(target.key);
  if (part === null) return selection;
  if (target.row === undefined) return result.set(target.key, null);
  const rows = new Map(part);
  const rowPart = rows.get(target.row);
  if (rowPart === null) return selection;
  if (target.seat === undefined) rows.set(target.row, null);
  else rows.set(target.row, new Set(rowPart).add(target.seat));
  return result.set(target.key, rows);
}

/** The selection without one thing that was selected as such. */
export function withoutTarget(selection: Selection, target: Target): Selection {
  const result = new Map(selection);
  const part = result.get(target.key);
  if (part === undefined) return selection;
  if (target.row === undefined || part === null) {
    result.delete(target.key);
    return result;
  }
  const rows = new Map(part);
  const rowPart = rows.get(target.row);
  if (target.seat === undefined || !rowPart) rows.delete(target.row);
  else {
    const seats = new Set(rowPart);
    seats.delete(target.seat);
    if (seats.size > 0) rows.set(target.row, seats);
    else rows.delete(target.row);
  }
  if (rows.size > 0) result.set(target.key, rows);
  else result.delete(target.key);
  return result;
}

export function toggled(selection: Selection, target: Target): Selection {
  return isTargetSelected(selection, target)
    ? withoutTarget(selection, target)
    : withTarget(selection, target);
}

/** What a seat of the drawn hall is in the layout. */
export function targetOf(layout: EditorLayout, hall: Hall, seat: number, level: Level): Target {
  const row = hall.rows[hall.rowOf[seat]!]!;
  const { key } = layout.sections[row.section]!;
  if (level === 'sections') return { key };
  const rowIndex = hall.rowOf[seat]! - hall.sections[row.section]!.firstRow;
  return level === 'rows'
    ? { key, row: rowIndex }
    : { key, row: rowIndex, seat: seat - row.firstSeat };
}

/** Selects what the seats in a box belong to. */
export function selectSeats(
  layout: EditorLayout,
  hall: Hall,
  seats: readonly number[],
  level: Level,
  before: Selection,
): Selection {
  const result = new Map<number, Map<number, Set<number> | null> | null>();
  for (const [key, part] of before)
    result.set(
      key,
      part === null
        ? null
        : new Map([...part].map(([row, seats]) => [row, seats && new Set(seats)])),
    );
  for (const seat of seats) {
    const target = targetOf(layout, hall, seat, level);
    if (target.row === undefined) {
      result.set(target.key, null);
      continue;
    }
    const part = result.get(target.key) ?? new Map<number, Set<number> | null>();
    if (result.get(target.key) === null) continue;
    result.set(target.key, part);
    if (target.seat === undefined) part.set(target.row, null);
    else if (part.get(target.row) !== null) {
      const set = part.get(target.row) ?? new Set<number>();
      part.set(target.row, set.add(target.seat));
    }
  }
  return result;
}

/** Whole sections. */
export function sectionsOnly(keys: readonly number[]): Selection {
  return new Map(keys.map((key) => [key, null]));
}

export function everything(layout: EditorLayout): Selection {
  return sectionsOnly(layout.sections.map((section) => section.key));
}

export function selectedSections(layout: EditorLayout, selection: Selection): EditorSection[] {
  return layout.sections.filter((section) => selection.has(section.key));
}

/** Drops what no longer exists. */
export function pruned(layout: EditorLayout, selection: Selection): Selection {
  const byKey = new Map(layout.sections.map((section) => [section.key, section]));
  const result = new Map<number, SectionPart>();
  for (const [key, part] of selection) {
    const section = byKey.get(key);
    if (!section) continue;
    if (part === null) {
      result.set(key, null);
      continue;
    }
    const rows = new Map<number, RowPart>();
    for (const [index, rowPart] of part) {
      const row = section.rows[index];
      if (!row) continue;
      if (rowPart === null) rows.set(index, null);
      else {
        const seats = [...rowPart].filter((seat) => seat < row.seats);
        if (seats.length > 0) rows.set(index, new Set(seats));
      }
    }
    if (rows.size > 0) result.set(key, rows);
  }
  return result;
}

/** How many seats are selected. */
export function selectedSeatCount(layout: EditorLayout, selection: Selection): number {
  let count = 0;
  for (const section of selectedSections(layout, selection)) {
    const part = selection.get(section.key)!;
    section.rows.forEach((row, index) => {
      if (part === null) count += row.seats;
      else {
        const rowPart = part.get(index);
        if (rowPart !== undefined) count += rowPart === null ? row.seats : rowPart.size;
      }
    });
  }
  return count;
}
