/**
 * Draws the hall. From far away a section is one area; nearer it falls apart into seats, and very
 * near the seats have numbers. Only what is visible is drawn, and seats of one look in one path.
 */
import type { SeatGrid } from './grid';
import {
  ACCESSIBLE,
  gradeOf,
  type Hall,
  type HallSection,
  numberOf,
  RESTRICTED_VIEW,
} from './hall';
import type { GradeMark, Palette } from './palette';
import type { SeatStatuses } from './statuses';
import { toScreen, type Viewport, visibleArea } from './viewport';

export interface Scene {
  readonly hall: Hall;
  readonly grid: SeatGrid;
  readonly statuses: SeatStatuses;
  readonly palette: Palette;
  readonly chosen: ReadonlySet<number>;
  /** Grades that the user wants to see; empty: all. */
  readonly gradesShown: ReadonlySet<number>;
  readonly cursor: number | null;
  /** Seats that have just been taken, and how much of their colour is left (1 to 0). */
  readonly fading: ReadonlyMap<number, number>;
  readonly stageLabel: string;
  readonly soldOutLabel: string;
  readonly font: string;
}

/** Below this distance of neighbours on the screen a section is drawn as one area. */
export const SEATS_FROM_PIXELS = 6;
const NUMBERS_FROM_PIXELS = 22;
const MARKS_FROM_PIXELS = 13;
const NAMES_FROM_PIXELS = 7.5;
/** A section that is turned further than this has edges across level words. */
const TURNED_SIN = 0.1;

export function showsSeats(hall: Hall, view: Viewport): boolean {
  return hall.pitch * view.scale >= SEATS_FROM_PIXELS;
}

export function paint(context: CanvasRenderingContext2D, scene: Scene, view: Viewport): void {
  context.fillStyle = scene.palette.ground;
  context.fillRect(0, 0, view.width, view.height);
  paintStage(context, scene, view);
  if (showsSeats(scene.hall, view)) {
    paintSectionNames(context, scene, view);
    paintSeats(context, scene, view);
  } else {
    paintSections(context, scene, view);
  }
}

function isShown(scene: Scene, grade: number): boolean {
  return scene.gradesShown.size === 0 || scene.gradesShown.has(grade);
}

/** The stage is as wide as the hall leaves room for. */
export function paintStage(context: CanvasRenderingContext2D, scene: Scene, view: Viewport): void {
  const { hall, palette } = scene;
  const nearest = Math.min(
    ...hall.sections.map((section) => Math.hypot(section.centreX, section.centreY)),
  );
  const halfWidth = Math.max(150, nearest * 0.32);
  const depth = Math.max(50, halfWidth * 0.36);
  const middle = toScreen(view, 0, -depth * 0.6);
  const [width, height] = [2 * halfWidth * view.scale, depth * view.scale];
  context.beginPath();
  const round = Math.min(12, height / 3);
  context.roundRect(middle.x - width / 2, middle.y - height / 2, width, height, round);
  context.fillStyle = palette.ink;
  context.fill();
  const size = Math.min(18, Math.max(9, height * 0.42));
  context.font = `800 ${size}px ${scene.font}`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  if (context.measureText(scene.stageLabel).width < width - 6) {
    context.fillStyle = palette.paper;
    context.fillText(scene.stageLabel, middle.x, middle.y + 1);
  }
}

function tracePolygon(
  context: CanvasRenderingContext2D,
  section: HallSection,
  view: Viewport,
): void {
  const { outline } = section;
  context.beginPath();
  for (let i = 0; i < outline.length; i += 2) {
    const point = toScreen(view, outline[i]!, outline[i + 1]!);
    if (i === 0) context.moveTo(point.x, point.y);
    else context.lineTo(point.x, point.y);
  }
  context.closePath();
}

function paintSections(context: CanvasRenderingContext2D, scene: Scene, view: Viewport): void {
  const { hall, statuses, palette } = scene;
  context.lineJoin = 'round';
  hall.sections.forEach((section, index) => {
    const look = palette.grade(section.grade);
    const free = statuses.freeInSection(index);
    const isOpen = free > 0 && isShown(scene, section.grade);
    tracePolygon(context, section, view);
    context.fillStyle = palette.taken;
    context.fill();
    if (isOpen) {
      // What is left shows in the strength of the colour.
      context.globalAlpha = 0.45 + 0.55 * Math.sqrt(free / section.seats);
      context.fillStyle = look.fill;
      context.fill();
      context.globalAlpha = 1;
      paintTexture(context, section, look.mark, look.on, view);
    }
    context.lineWidth = 1.5;
    context.strokeStyle = palette.ground;
    context.stroke();
  });
  hall.sections.forEach((section, index) => {
    const look = palette.grade(section.grade);
    const free = statuses.freeInSection(index);
    const isOpen = free > 0 && isShown(scene, section.grade);
    const middle = toScreen(view, section.centreX, section.centreY);
    const room = sectionRoom(section, view);
    const count = free === 0 ? scene.soldOutLabel : free.toLocaleString('en-US');
    const tallest = Math.min(15, room.height * 0.34);
    context.font = `700 ${tallest}px ${scene.font}`;
    const widest = Math.max(
      context.measureText(section.name).width,
      context.measureText(count).width,
    );
    const size = Math.min(tallest, (tallest * room.width) / widest);
    if (size < NAMES_FROM_PIXELS) return;
    context.font = `700 ${size}px ${scene.font}`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.fillStyle = isOpen ? look.on : palette.inkSoft;
    // Words may reach over the edges of a turned section: a rim keeps them readable.
    const isTurned = Math.abs(Math.sin(section.angle)) >= TURNED_SIN;
    context.strokeStyle = isOpen ? look.fill : palette.taken;
    context.lineWidth = 3;
    const paintWord = (word: string, y: number) => {
      if (isTurned) context.strokeText(word, middle.x, y);
      context.fillText(word, middle.x, y);
    };
    paintWord(section.name, middle.y - size * 0.58);
    context.font = `500 ${size * 0.9}px ${scene.font}`;
    paintWord(count, middle.y + size * 0.62);
  });
  for (const seat of scene.chosen) paintChosenDot(context, scene, view, seat);
}

/** How much room for level text a turned section has. */
function sectionRoom(section: HallSection, view: Viewport): { width: number; height: number } {
  const long = (section.seats / section.rows) * section.seatPitch * view.scale;
  const deep = section.rows * section.rowPitch * view.scale;
  const turned = Math.abs(Math.sin(section.angle));
  const short = Math.min(long, deep);
  if (turned < TURNED_SIN) return { width: 0.92 * long, height: deep };
  if (turned > 0.9) return { width: 0.92 * deep, height: long };
  return { width: 0.92 * short, height: short };
}

/** Light lines or dots over a section, the same mark as on the seats of its grade. */
function paintTexture(
  context: CanvasRenderingContext2D,
  section: HallSection,
  mark: GradeMark,
  colour: string,
  view: Viewport,
): void {
  if (mark === 'plain') return;
  const from = toScreen(view, section.bounds.left, section.bounds.top);
  const to = toScreen(view, section.bounds.right, section.bounds.bottom);
  if (to.x < 0 || to.y < 0 || from.x > view.width || from.y > view.height) return;
  context.save();
  context.clip();
  context.beginPath();
  const step = 9;
  const startX = Math.floor(from.x / step) * step;
  const startY = Math.floor(from.y / step) * step;
  const height = to.y - startY;
  if (mark === 'stripe' || mark === 'cross')
    for (let x = startX - height; x < to.x; x += step) {
      context.moveTo(x, startY);
      context.lineTo(x + height, startY + height);
    }
  if (mark === 'bar' || mark === 'cross')
    for (let y = startY; y < to.y; y += step) {
      context.moveTo(from.x, y);
      context.lineTo(to.x, y);
    }
  if (mark === 'dot' || mark === 'ring')
    for (let y = startY; y < to.y; y += step)
      for (let x = startX; x < to.x; x += step) {
        context.moveTo(x + 1.4, y);
        context.arc(x, y, 1.4, 0, 2 * Math.PI);
      }
  context.globalAlpha = 0.22;
  context.lineWidth = 1.4;
  context.strokeStyle = colour;
  context.stroke();
  context.restore();
  tracePolygon(context, section, view);
}

function paintSectionNames(context: CanvasRenderingContext2D, scene: Scene, view: Viewport): void {
  const { hall, palette } = scene;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.font = `700 13px ${scene.font}`;
  context.fillStyle = palette.inkSoft;
  for (const section of hall.sections) {
    // Between the first row and what is before it: another section, or the stage.
    const back = Math.min(section.rowPitch * 1.15, section.seatPitch);
    const first = section.firstSeat + Math.floor((hall.rows[section.firstRow]!.seats - 1) / 2);
    const [sin, cos] = [Math.sin(section.angle), Math.cos(section.angle)];
    const point = toScreen(view, hall.x[first]! + back * sin, hall.y[first]! - back * cos);
    if (point.x < -80 || point.x > view.width + 80) continue;
    if (point.y < -20 || point.y > view.height + 20) continue;
    context.save();
    context.translate(point.x, point.y);
    context.rotate(readable(section.angle));
    context.fillText(section.name, 0, 0);
    context.restore();
  }
}

/** Text is never upside down. */
function readable(angle: number): number {
  const turned = Math.atan2(Math.sin(angle), Math.cos(angle));
  if (turned > Math.PI / 2) return turned - Math.PI;
  if (turned < -Math.PI / 2) return turned + Math.PI;
  return turned;
}

function paintSeats(context: CanvasRenderingContext2D, scene: Scene, view: Viewport): void {
  const { hall, grid, statuses, palette } = scene;
  const pitch = hall.pitch * view.scale;
  const size = Math.min(pitch * 0.8, 46);
  const free: number[][] = hall.grades.map(() => []);
  const taken: number[] = [];
  const special: number[] = [];
  grid.forEachIn(visibleArea(view, size), (seat) => {
    if (scene.chosen.has(seat) || scene.fading.has(seat)) special.push(seat);
    else if (statuses.isFree(seat) && isShown(scene, gradeOf(hall, seat)))
      free[gradeOf(hall, seat)]!.push(seat);
    else taken.push(seat);
  });
  fillSeats(context, scene, view, taken, size * 0.72, palette.taken);
  free.forEach((seats, grade) => {
    const look = palette.grade(grade);
    fillSeats(context, scene, view, seats, size, look.fill);
    if (pitch >= NUMBERS_FROM_PIXELS) paintNumbers(context, scene, view, seats, size, look.on);
    else if (pitch >= MARKS_FROM_PIXELS)
      paintMarks(context, scene, view, seats, size, look.mark, look.on);
  });
  for (const seat of special)
    if (scene.chosen.has(seat)) paintChosen(context, scene, view, seat, size);
    else paintFading(context, scene, view, seat, size);
  if (scene.cursor !== null) paintCursor(context, scene, view, scene.cursor, size);
}

function fillSeats(
  context: CanvasRenderingContext2D,
  scene: Scene,
  view: Viewport,
  seats: readonly number[],
  size: number,
  colour: string,
): void {
  const { hall } = scene;
  context.fillStyle = colour;
  const isSmall = size < 9;
  const round = size * 0.28;
  context.beginPath();
  for (const seat of seats) {
    const { x, y } = toScreen(view, hall.x[seat]!, hall.y[seat]!);
    const angle = hall.angle[seat]!;
    // Small seats need no corners and no turn: nobody sees them, and this is much faster.
    if (isSmall) context.rect(x - size / 2, y - size / 2, size, size);
    else if (Math.abs(angle) < 0.02)
      context.roundRect(x - size / 2, y - size / 2, size, size, round);
    else traceTurned(context, x, y, size / 2, angle, round);
  }
  context.fill();
}

/** A square with round corners, turned around its middle. */
function traceTurned(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  half: number,
  angle: number,
  round: number,
): void {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const at = (dx: number, dy: number): [number, number] => [
    x + dx * cos - dy * sin,
    y + dx * sin + dy * cos,
  ];
  context.moveTo(...at(0, -half));
  context.arcTo(...at(half, -half), ...at(half, 0), round);
  context.arcTo(...at(half, half), ...at(0, half), round);
  context.arcTo(...at(-half, half), ...at(-half, 0), round);
  context.arcTo(...at(-half, -half), ...at(0, -half), round);
  context.closePath();
}

function paintNumbers(
  context: CanvasRenderingContext2D,
  scene: Scene,
  view: Viewport,
  seats: readonly number[],
  size: number,
  colour: string,
): void {
  const { hall } = scene;
  context.fillStyle = colour;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.font = `700 ${Math.min(15, size * 0.46)}px ${scene.font}`;
  for (const seat of seats) {
    const row = hall.rows[hall.rowOf[seat]!]!;
    const { x, y } = toScreen(view, hall.x[seat]!, hall.y[seat]!);
    const flags = hall.flags[seat]!;
    const number = String(numberOf(row, seat));
    context.fillText(flags & ACCESSIBLE ? '♿\uFE0E' : number, x, y + 0.5);
    if (flags & RESTRICTED_VIEW) {
      context.fillRect(x - size * 0.3, y + size * 0.32, size * 0.6, 1.5);
    }
  }
}

function paintMarks(
  context: CanvasRenderingContext2D,
  scene: Scene,
  view: Viewport,
  seats: readonly number[],
  size: number,
  mark: GradeMark,
  colour: string,
): void {
  const { hall } = scene;
  const reach = size * 0.24;
  context.beginPath();
  for (const seat of seats) {
    const { x, y } = toScreen(view, hall.x[seat]!, hall.y[seat]!);
    traceMark(context, mark, x, y, reach);
  }
  context.lineWidth = Math.max(1, size * 0.1);
  context.strokeStyle = colour;
  context.stroke();
}

export function traceMark(
  path: Pick<CanvasRenderingContext2D, 'moveTo' | 'lineTo' | 'arc'>,
  mark: GradeMark,
  x: number,
  y: number,
  reach: number,
): void {
  if (mark === 'stripe' || mark === 'cross') {
    path.moveTo(x - reach, y - reach);
    path.lineTo(x + reach, y + reach);
  }
  if (mark === 'cross') {
    path.moveTo(x + reach, y - reach);
    path.lineTo(x - reach, y + reach);
  }
  if (mark === 'bar') {
    path.moveTo(x - reach, y);
    path.lineTo(x + reach, y);
  }
  if (mark === 'dot' || mark === 'ring') {
    const radius = mark === 'dot' ? reach * 0.35 : reach;
    path.moveTo(x + radius, y);
    path.arc(x, y, radius, 0, 2 * Math.PI);
  }
}

function paintChosen(
  context: CanvasRenderingContext2D,
  scene: Scene,
  view: Viewport,
  seat: number,
  size: number,
): void {
  const { hall, palette } = scene;
  const { x, y } = toScreen(view, hall.x[seat]!, hall.y[seat]!);
  const grown = Math.max(size * 1.12, 8);
  context.beginPath();
  traceTurned(context, x, y, grown / 2, hall.angle[seat]!, grown * 0.28);
  context.fillStyle = palette.chosen;
  context.fill();
  context.lineWidth = Math.max(1.5, size * 0.09);
  context.strokeStyle = palette.ink;
  context.stroke();
  if (size < 8) return;
  const reach = size * 0.26;
  context.beginPath();
  context.moveTo(x - reach, y + reach * 0.1);
  context.lineTo(x - reach * 0.2, y + reach * 0.8);
  context.lineTo(x + reach, y - reach * 0.7);
  context.lineWidth = Math.max(1.5, size * 0.12);
  context.strokeStyle = palette.onChosen;
  context.stroke();
}

/** From far away a chosen seat is a dot that can be seen. */
function paintChosenDot(
  context: CanvasRenderingContext2D,
  scene: Scene,
  view: Viewport,
  seat: number,
): void {
  const { x, y } = toScreen(view, scene.hall.x[seat]!, scene.hall.y[seat]!);
  context.beginPath();
  context.arc(x, y, 6, 0, 2 * Math.PI);
  context.fillStyle = scene.palette.chosen;
  context.fill();
  context.lineWidth = 2;
  context.strokeStyle = scene.palette.paper;
  context.stroke();
}

function paintFading(
  context: CanvasRenderingContext2D,
  scene: Scene,
  view: Viewport,
  seat: number,
  size: number,
): void {
  const { hall, palette } = scene;
  const left = scene.fading.get(seat) ?? 0;
  fillSeats(context, scene, view, [seat], size * 0.72, palette.taken);
  context.globalAlpha = left;
  fillSeats(
    context,
    scene,
    view,
    [seat],
    size * (0.72 + 0.28 * left),
    palette.grade(gradeOf(hall, seat)).fill,
  );
  context.globalAlpha = 1;
}

function paintCursor(
  context: CanvasRenderingContext2D,
  scene: Scene,
  view: Viewport,
  seat: number,
  size: number,
): void {
  const { hall, palette } = scene;
  const { x, y } = toScreen(view, hall.x[seat]!, hall.y[seat]!);
  const half = Math.max(size, 14) * 0.72;
  for (const [width, colour] of [
    [5, palette.paper],
    [3, palette.ink],
  ] as const) {
    context.beginPath();
    traceTurned(context, x, y, half, hall.angle[seat]!, half * 0.5);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
  }
}

/** The section around a point of the hall. */
export function sectionAt(hall: Hall, x: number, y: number): number | null {
  for (let index = hall.sections.length - 1; index >= 0; index--)
    if (isInside(hall.sections[index]!.outline, x, y)) return index;
  return null;
}

export function isInside(outline: Float32Array, x: number, y: number): boolean {
  let isIn = false;
  for (let i = 0, j = outline.length - 2; i < outline.length; j = i, i += 2) {
    const [xi, yi, xj, yj] = [outline[i]!, outline[i + 1]!, outline[j]!, outline[j + 1]!];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) isIn = !isIn;
  }
  return isIn;
}
