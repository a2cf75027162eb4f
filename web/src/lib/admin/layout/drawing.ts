/** The layout as the fan's map draws it, with what the editor needs to find things in it. */
import { SeatGrid } from '$lib/seatmap/grid';
import { type Hall, makeHall } from '$lib/seatmap/hall';
import { isInside } from '$lib/seatmap/paint';
import { SeatStatuses } from '$lib/seatmap/statuses';
import type { Point } from './geometry';
import { type EditorLayout, toWire } from './model';
import { type Level, type Target, targetOf } from './selection';

export interface Drawing {
  readonly layout: EditorLayout;
  readonly hall: Hall;
  readonly grid: SeatGrid;
  readonly statuses: SeatStatuses;
}

/** Null while there is nothing to draw. */
export function draw(layout: EditorLayout): Drawing | null {
  // Its sections and those of the hall have the same indexes.
  const drawable = { sections: layout.sections.filter((section) => section.rows.length > 0) };
  if (drawable.sections.length === 0) return null;
  const hall = makeHall(toWire(drawable));
  return {
    layout: drawable,
    hall,
    grid: new SeatGrid(hall),
    statuses: new SeatStatuses(hall),
  };
}

/** What is under a point: the nearest seat's section, row or itself, or the section around it. */
export function targetAt(drawing: Drawing, { x, y }: Point, level: Level): Target | null {
  const { hall, grid, layout } = drawing;
  const seat = grid.nearest(x, y, hall.pitch * 0.8);
  if (seat !== null) return targetOf(layout, hall, seat, level);
  if (level !== 'sections') return null;
  for (let index = hall.sections.length - 1; index >= 0; index--)
    if (isInside(hall.sections[index]!.outline, x, y)) return { key: layout.sections[index]!.key };
  return null;
}

export function seatsBetween(drawing: Drawing, from: Point, to: Point): number[] {
  const seats: number[] = [];
  const area = {
    left: Math.min(from.x, to.x),
    right: Math.max(from.x, to.x),
    top: Math.min(from.y, to.y),
    bottom: Math.max(from.y, to.y),
  };
  drawing.grid.forEachIn(area, (seat) => seats.push(seat));
  return seats;
}
