/** Draws a hall by how much of it is sold: by sections where it is large, by seats where not. */
import type { Hall, HallSection } from '$lib/seatmap/hall';
import { AVAILABLE, HELD, type SeatStatuses } from '$lib/seatmap/statuses';

/** From so many seats on, a section is one area. */
export const SEATS_SHOWN_MAX = 4_000;
/** A seat that was sold within this time is fresh. */
export const FRESH_MS = 60_000;
const MARGIN = 12;

export interface HeatColours {
  readonly ground: string;
  readonly line: string;
  readonly free: string;
  readonly held: string;
  readonly sold: string;
  readonly fresh: string;
  readonly ink: string;
}

export interface HeatScene {
  readonly hall: Hall;
  readonly statuses: SeatStatuses;
  /** When each seat was seen to be sold, in milliseconds; 0: before the page was opened. */
  readonly soldAt: Float64Array;
  readonly colours: HeatColours;
  readonly nowMs: number;
}

export interface SectionHeat {
  readonly name: string;
  readonly grade: string;
  readonly total: number;
  readonly sold: number;
  readonly held: number;
  readonly free: number;
  /** Sold within the last minute. */
  readonly fresh: number;
}

export function sectionHeat(scene: HeatScene, section: HallSection): SectionHeat {
  let [sold, held, free, fresh] = [0, 0, 0, 0];
  for (let seat = section.firstSeat; seat < section.firstSeat + section.seats; seat++) {
    const status = scene.statuses.of(seat);
    if (status === AVAILABLE) free += 1;
    else if (status === HELD) held += 1;
    else {
      sold += 1;
      if (isFresh(scene, seat)) fresh += 1;
    }
  }
  const grade = scene.hall.grades[section.grade] ?? '';
  return { name: section.name, grade, total: section.seats, sold, held, free, fresh };
}

function isFresh(scene: HeatScene, seat: number): boolean {
  const at = scene.soldAt[seat]!;
  return at > 0 && scene.nowMs - at < FRESH_MS;
}

/** How the hall fits into a picture: pixels per centimetre, and where its corner is. */
export function fit(hall: Hall, width: number, height: number) {
  const { left, right, top, bottom } = hall.bounds;
  const scale = Math.min(
    (width - 2 * MARGIN) / Math.max(1, right - left),
    (height - 2 * MARGIN) / Math.max(1, bottom - top),
  );
  return {
    scale,
    x: (width - (right - left) * scale) / 2 - left * scale,
    y: (height - (bottom - top) * scale) / 2 - top * scale,
  };
}

export function paintHeat(
  context: CanvasRenderingContext2D,
  scene: HeatScene,
  width: number,
  height: number,
): void {
  context.fillStyle = scene.colours.ground;
  context.fillRect(0, 0, width, height);
  const place = fit(scene.hall, width, height);
  if (scene.hall.seatCount > SEATS_SHOWN_MAX)
    for (const section of scene.hall.sections) paintSection(context, scene, section, place);
  else paintSeats(context, scene, place);
}

type Place = ReturnType<typeof fit>;

function paintSection(
  context: CanvasRenderingContext2D,
  scene: HeatScene,
  section: HallSection,
  place: Place,
): void {
  const { colours } = scene;
  const heat = sectionHeat(scene, section);
  context.beginPath();
  for (let corner = 0; corner < section.outline.length; corner += 2)
    context.lineTo(
      section.outline[corner]! * place.scale + place.x,
      section.outline[corner + 1]! * place.scale + place.y,
    );
  context.closePath();
  context.fillStyle = colours.free;
  context.fill();
  context.globalAlpha = (heat.sold + heat.held / 2) / Math.max(1, heat.total);
  context.fillStyle = colours.sold;
  context.fill();
  context.globalAlpha = 1;
  context.lineWidth = heat.fresh > 0 ? 3 : 1;
  context.strokeStyle = heat.fresh > 0 ? colours.fresh : colours.line;
  context.stroke();
}

function paintSeats(context: CanvasRenderingContext2D, scene: HeatScene, place: Place): void {
  const { hall, statuses, colours } = scene;
  const size = Math.max(2, hall.pitch * place.scale * 0.8);
  for (let seat = 0; seat < hall.seatCount; seat++) {
    const status = statuses.of(seat);
    const x = hall.x[seat]! * place.scale + place.x;
    const y = hall.y[seat]! * place.scale + place.y;
    if (status === AVAILABLE) context.fillStyle = colours.free;
    else if (status === HELD) context.fillStyle = colours.held;
    else context.fillStyle = isFresh(scene, seat) ? colours.fresh : colours.sold;
    context.fillRect(x - size / 2, y - size / 2, size, size);
  }
}
