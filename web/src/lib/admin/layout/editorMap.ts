/**
 * The drawing board: what is on the screen and what the pointer does there. The hall is painted
 * into a picture by the painter of the fan's map; moves push the picture around, and only what is
 * selected or being drawn is painted anew in each frame.
 */
import { type Bounds, joinBounds } from '$lib/seatmap/hall';
import { currentPalette } from '$lib/seatmap/map';
import { paint } from '$lib/seatmap/paint';
import type { Palette } from '$lib/seatmap/palette';
import { context2d, HallPicture, pixelRatio } from '$lib/seatmap/hallPicture';
import {
  clamp,
  fit,
  pan,
  resize,
  toHall,
  toScreen,
  type Viewport,
  visibleArea,
  zoomAt,
} from '$lib/seatmap/viewport';
import { type Drawing, seatsBetween, targetAt } from './drawing';
import { middleOf, type Point } from './geometry';
import {
  isSelected,
  isTargetSelected,
  type Level,
  NOTHING,
  only,
  type Selection,
  selectSeats,
  toggled,
  withTarget,
} from './selection';
import { GRID_CM, type Guide, snapAngle, snapMove, snapToGrid } from './snap';

export type Tool = 'select' | 'hand' | 'rectangle' | 'polygon' | 'brush';

export interface EditorMapEvents {
  select(selection: Selection): void;
  move(dx: number, dy: number): void;
  turn(degrees: number): void;
  rectangle(from: Point, to: Point): void;
  polygon(corners: readonly Point[]): void;
  brush(painted: Selection): void;
}

export interface EditorScene {
  readonly drawing: Drawing | null;
  readonly selection: Selection;
  readonly level: Level;
  readonly tool: Tool;
  readonly isSnapping: boolean;
  readonly isReadOnly: boolean;
  readonly cursor: number | null;
  readonly stageLabel: string;
}

type Gesture =
  | { kind: 'pan' }
  | { kind: 'box'; from: Point; to: Point; before: Selection }
  | { kind: 'move'; from: Point; dx: number; dy: number; guides: readonly Guide[] }
  | { kind: 'turn'; around: Point; from: number; degrees: number }
  | { kind: 'rectangle'; from: Point; to: Point }
  | { kind: 'brush'; painted: Selection };

interface Pointer {
  x: number;
  y: number;
}

const REST_MS = 120;
const SNAP_PIXELS = 8;
const HANDLE_PIXELS = 28;
const TAP_PIXELS = 4;
const EMPTY_AREA: Bounds = { left: -1500, right: 1500, top: -300, bottom: 2500 };

export class EditorMap {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #picture = new HallPicture();
  readonly #events: EditorMapEvents;
  #scene: EditorScene;
  #palette: Palette = currentPalette();
  #view: Viewport = fit(1, 1, EMPTY_AREA);
  #hasFitted = false;
  #frame = 0;
  #movedAt = 0;
  #restTimer: ReturnType<typeof setTimeout> | undefined;
  #pointers = new Map<number, Pointer>();
  #gesture: Gesture | null = null;
  #downAt: Pointer = { x: 0, y: 0 };
  #polygon: Point[] = [];
  #polygonEnd: Point | null = null;

  constructor(canvas: HTMLCanvasElement, scene: EditorScene, events: EditorMapEvents) {
    this.#canvas = canvas;
    this.#scene = scene;
    this.#events = events;
    this.#context = context2d(canvas);
  }

  /** Listens to the canvas until the returned function is called. */
  start(): () => void {
    const listeners = new AbortController();
    const { signal } = listeners;
    const canvas = this.#canvas;
    canvas.addEventListener('pointerdown', this.#onDown, { signal });
    canvas.addEventListener('pointermove', this.#onMove, { signal });
    canvas.addEventListener('pointerup', this.#onUp, { signal });
    canvas.addEventListener('pointercancel', this.#onCancel, { signal });
    canvas.addEventListener('dblclick', () => this.finishPolygon(), { signal });
    canvas.addEventListener('wheel', this.#onWheel, { signal, passive: false });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', this.#onTheme, {
      signal,
    });
    const theme = new MutationObserver(this.#onTheme);
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    const size = new ResizeObserver(() => this.#resize());
    size.observe(canvas);
    this.#resize();
    return () => {
      listeners.abort();
      theme.disconnect();
      size.disconnect();
      cancelAnimationFrame(this.#frame);
      clearTimeout(this.#restTimer);
    };
  }

  setScene(scene: EditorScene): void {
    const hasChanged = scene.drawing !== this.#scene.drawing;
    if (scene.tool !== this.#scene.tool) this.cancel();
    this.#scene = scene;
    if (hasChanged) this.#picture.expire();
    if (hasChanged && !this.#hasFitted && scene.drawing) this.showAll();
    this.#schedule();
  }

  /** Ends what is being drawn. True if there was something. */
  cancel(): boolean {
    const wasBusy = this.#gesture !== null || this.#polygon.length > 0;
    this.#gesture = null;
    this.#polygon = [];
    this.#polygonEnd = null;
    this.#schedule();
    return wasBusy;
  }

  finishPolygon(): void {
    const corners = this.#polygon.filter(
      (corner, i, all) => i === 0 || corner.x !== all[i - 1]!.x || corner.y !== all[i - 1]!.y,
    );
    this.cancel();
    if (corners.length >= 3) this.#events.polygon(corners);
  }

  /** Takes the last corner back. True if there was one. */
  undoCorner(): boolean {
    const had = this.#polygon.length > 0;
    this.#polygon = this.#polygon.slice(0, -1);
    this.#schedule();
    return had;
  }

  zoomBy(factor: number): void {
    const { width, height, scale } = this.#view;
    this.#moveTo(zoomAt(this.#view, width / 2, height / 2, scale * factor));
  }

  showAll(): void {
    this.#hasFitted = this.#view.width > 1;
    this.#moveTo(fit(this.#view.width, this.#view.height, this.#area()));
  }

  /** Moves the view so that an area is inside of it. */
  reveal(area: Bounds): void {
    const seen = visibleArea(this.#view, -24);
    const isInside =
      area.left >= seen.left &&
      area.right <= seen.right &&
      area.top >= seen.top &&
      area.bottom <= seen.bottom;
    if (isInside) return;
    const whole = fit(this.#view.width, this.#view.height, area);
    this.#moveTo({ ...whole, scale: Math.min(this.#view.scale, whole.scale) });
  }

  #area(): Bounds {
    const { drawing } = this.#scene;
    if (!drawing) return EMPTY_AREA;
    const { left, right, top, bottom } = drawing.hall.bounds;
    return {
      left: Math.min(left, -150),
      right: Math.max(right, 150),
      top: Math.min(top, -180),
      bottom,
    };
  }

  #schedule(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(this.#onFrame);
  }

  #resize(): void {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (width === 0 || height === 0) return;
    const ratio = pixelRatio();
    this.#canvas.width = Math.round(width * ratio);
    this.#canvas.height = Math.round(height * ratio);
    this.#view = resize(this.#view, width, height);
    this.#picture.expire();
    if (!this.#hasFitted) this.showAll();
    this.#schedule();
  }

  #onTheme = (): void => {
    this.#palette = currentPalette();
    this.#picture.expire();
    this.#schedule();
  };

  #moveTo(view: Viewport): void {
    const area = this.#area();
    const home = fit(view.width, view.height, area).scale;
    this.#view = clamp(view, grown(area, 3_000), Math.min(home, 0.1) * 0.3, 2);
    this.#movedAt = performance.now();
    this.#schedule();
    clearTimeout(this.#restTimer);
    this.#restTimer = setTimeout(() => this.#schedule(), REST_MS + 10);
  }

  #onFrame = (now: number): void => {
    this.#frame = 0;
    const isMoving = this.#gesture?.kind === 'pan' || now - this.#movedAt < REST_MS;
    if (this.#picture.mustBePainted(this.#view, isMoving))
      this.#picture.paint(this.#view, (context, view) => this.#paintPicture(context, view));
    this.#picture.show(this.#context, this.#view, this.#palette.ground);
    this.#paintOverlay();
  };

  #paintPicture(context: CanvasRenderingContext2D, view: Viewport): void {
    const { drawing, stageLabel } = this.#scene;
    if (drawing)
      paint(
        context,
        {
          ...drawing,
          palette: this.#palette,
          chosen: new Set(),
          gradesShown: new Set(),
          cursor: null,
          fading: new Map(),
          stageLabel,
          soldOutLabel: '',
          font: getComputedStyle(this.#canvas).fontFamily,
        },
        view,
      );
    else this.#paintEmpty(context, view);
    this.#paintGrid(context, view);
  }

  #paintEmpty(context: CanvasRenderingContext2D, view: Viewport): void {
    context.fillStyle = this.#palette.ground;
    context.fillRect(0, 0, view.width, view.height);
    const from = toScreen(view, -150, -120);
    const to = toScreen(view, 150, -12);
    context.fillStyle = this.#palette.ink;
    context.fillRect(from.x, from.y, to.x - from.x, to.y - from.y);
    context.fillStyle = this.#palette.paper;
    context.font = `800 12px ${getComputedStyle(this.#canvas).fontFamily}`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.fillText(this.#scene.stageLabel, (from.x + to.x) / 2, (from.y + to.y) / 2);
  }

  /** Lines that are at least 24 pixels apart. */
  #paintGrid(context: CanvasRenderingContext2D, view: Viewport): void {
    let step = GRID_CM;
    while (step * view.scale < 24) step *= 2;
    const seen = visibleArea(view);
    context.beginPath();
    for (let x = Math.ceil(seen.left / step) * step; x <= seen.right; x += step) {
      const at = toScreen(view, x, 0).x;
      context.moveTo(at, 0);
      context.lineTo(at, view.height);
    }
    for (let y = Math.ceil(seen.top / step) * step; y <= seen.bottom; y += step) {
      const at = toScreen(view, 0, y).y;
      context.moveTo(0, at);
      context.lineTo(view.width, at);
    }
    context.globalAlpha = 0.09;
    context.lineWidth = 1;
    context.strokeStyle = this.#palette.ink;
    context.stroke();
    context.globalAlpha = 1;
  }

  #paintOverlay(): void {
    const context = this.#context;
    const gesture = this.#gesture;
    context.lineJoin = 'round';
    context.strokeStyle = this.#palette.chosen;
    this.#paintSelection(gesture?.kind === 'brush' ? gesture.painted : this.#scene.selection);
    if (gesture?.kind === 'box' || gesture?.kind === 'rectangle') this.#paintBox(gesture);
    if (gesture?.kind === 'move') for (const guide of gesture.guides) this.#paintGuide(guide);
    if (this.#polygon.length > 0) this.#paintPolygon();
    this.#paintHandle();
    this.#paintCursor();
  }

  #paintSelection(selection: Selection): void {
    const { drawing } = this.#scene;
    if (!drawing || selection.size === 0) return;
    const context = this.#context;
    const transform = this.#ghostTransform();
    context.lineWidth = 2.5;
    let hasParts = false;
    drawing.layout.sections.forEach((section, index) => {
      const part = selection.get(section.key);
      if (part === undefined) return;
      if (part !== null) {
        hasParts = true;
        return;
      }
      const { outline } = drawing.hall.sections[index]!;
      context.beginPath();
      for (let i = 0; i < outline.length; i += 2) {
        const { x, y } = transform({ x: outline[i]!, y: outline[i + 1]! });
        const point = toScreen(this.#view, x, y);
        if (i === 0) context.moveTo(point.x, point.y);
        else context.lineTo(point.x, point.y);
      }
      context.closePath();
      context.globalAlpha = this.#gesture ? 0.3 : 0.12;
      context.fillStyle = this.#palette.chosen;
      context.fill();
      context.globalAlpha = 1;
      context.stroke();
    });
    if (hasParts) this.#paintSelectedSeats(drawing, selection);
  }

  #paintSelectedSeats({ hall, grid, layout }: Drawing, selection: Selection): void {
    const context = this.#context;
    const radius = Math.max(2, hall.pitch * this.#view.scale * 0.45);
    context.beginPath();
    grid.forEachIn(visibleArea(this.#view, radius), (seat) => {
      const rowIndex = hall.rowOf[seat]!;
      const row = hall.rows[rowIndex]!;
      const { key } = layout.sections[row.section]!;
      if (selection.get(key) === null) return;
      const depth = rowIndex - hall.sections[row.section]!.firstRow;
      if (!isSelected(selection, key, depth, seat - row.firstSeat)) return;
      const { x, y } = toScreen(this.#view, hall.x[seat]!, hall.y[seat]!);
      context.moveTo(x + radius, y);
      context.arc(x, y, radius, 0, 2 * Math.PI);
    });
    context.lineWidth = Math.max(1.5, radius * 0.3);
    context.stroke();
  }

  /** Where what is being moved or turned would come to lie. */
  #ghostTransform(): (point: Point) => Point {
    const gesture = this.#gesture;
    if (gesture?.kind === 'move') return ({ x, y }) => ({ x: x + gesture.dx, y: y + gesture.dy });
    if (gesture?.kind === 'turn') {
      const angle = (gesture.degrees * Math.PI) / 180;
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
      return ({ x, y }) => {
        const [dx, dy] = [x - gesture.around.x, y - gesture.around.y];
        return {
          x: gesture.around.x + dx * cos - dy * sin,
          y: gesture.around.y + dx * sin + dy * cos,
        };
      };
    }
    return (point) => point;
  }

  #paintBox({ from, to, kind }: { from: Point; to: Point; kind: string }): void {
    const [a, b] = [toScreen(this.#view, from.x, from.y), toScreen(this.#view, to.x, to.y)];
    this.#context.setLineDash(kind === 'box' ? [5, 4] : []);
    this.#context.lineWidth = 1.5;
    this.#context.strokeRect(a.x, a.y, b.x - a.x, b.y - a.y);
    this.#context.setLineDash([]);
  }

  #paintGuide({ axis, at }: Guide): void {
    const { width, height } = this.#view;
    const point = toScreen(this.#view, at, at);
    this.#context.beginPath();
    this.#context.moveTo(axis === 'x' ? point.x : 0, axis === 'x' ? 0 : point.y);
    this.#context.lineTo(axis === 'x' ? point.x : width, axis === 'x' ? height : point.y);
    this.#context.lineWidth = 1;
    this.#context.stroke();
  }

  #paintPolygon(): void {
    const context = this.#context;
    const points = this.#polygonEnd ? [...this.#polygon, this.#polygonEnd] : this.#polygon;
    context.beginPath();
    points.forEach(({ x, y }, i) => {
      const point = toScreen(this.#view, x, y);
      if (i === 0) context.moveTo(point.x, point.y);
      else context.lineTo(point.x, point.y);
    });
    context.lineWidth = 2;
    context.stroke();
    context.fillStyle = this.#palette.chosen;
    for (const { x, y } of this.#polygon) {
      const point = toScreen(this.#view, x, y);
      context.beginPath();
      context.arc(point.x, point.y, 4, 0, 2 * Math.PI);
      context.fill();
    }
  }

  #handle(): { at: Point; around: Point } | null {
    const { drawing, selection, level, tool, isReadOnly } = this.#scene;
    if (!drawing || isReadOnly || level !== 'sections' || tool !== 'select') return null;
    const sections = drawing.hall.sections.filter((_, index) =>
      selection.has(drawing.layout.sections[index]!.key),
    );
    if (sections.length === 0) return null;
    const bounds = joinBounds(sections.map((section) => section.bounds));
    const around = middleOf(bounds);
    const top = toScreen(this.#view, around.x, bounds.top);
    return { at: { x: top.x, y: top.y - HANDLE_PIXELS }, around };
  }

  #paintHandle(): void {
    if (this.#gesture) return;
    const handle = this.#handle();
    if (!handle) return;
    const context = this.#context;
    context.beginPath();
    context.moveTo(handle.at.x, handle.at.y);
    context.lineTo(handle.at.x, handle.at.y + HANDLE_PIXELS);
    context.lineWidth = 1.5;
    context.stroke();
    context.beginPath();
    context.arc(handle.at.x, handle.at.y, 7, 0, 2 * Math.PI);
    context.fillStyle = this.#palette.paper;
    context.fill();
    context.lineWidth = 2.5;
    context.stroke();
  }

  #paintCursor(): void {
    const { cursor, drawing } = this.#scene;
    if (cursor === null || !drawing || cursor >= drawing.hall.seatCount) return;
    const { hall } = drawing;
    const { x, y } = toScreen(this.#view, hall.x[cursor]!, hall.y[cursor]!);
    const half = Math.max(8, hall.pitch * this.#view.scale * 0.6);
    this.#context.lineWidth = 3;
    this.#context.strokeStyle = this.#palette.ink;
    this.#context.strokeRect(x - half, y - half, 2 * half, 2 * half);
  }

  #local(event: MouseEvent): Pointer {
    const box = this.#canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  #point({ x, y }: Pointer): Point {
    return toHall(this.#view, x, y);
  }

  #snapped(point: Point): Point {
    if (!this.#scene.isSnapping) return { x: Math.round(point.x), y: Math.round(point.y) };
    return { x: snapToGrid(point.x), y: snapToGrid(point.y) };
  }

  #onDown = (event: PointerEvent): void => {
    const at = this.#local(event);
    this.#canvas.setPointerCapture(event.pointerId);
    this.#pointers.set(event.pointerId, at);
    this.#downAt = at;
    if (this.#pointers.size > 1) {
      this.#gesture = { kind: 'pan' };
      return;
    }
    const { tool, isReadOnly } = this.#scene;
    if (event.button === 1 || tool === 'hand') this.#gesture = { kind: 'pan' };
    else if (event.button !== 0) return;
    else if (tool === 'select' || isReadOnly) this.#beginSelect(at, event.shiftKey);
    else if (tool === 'rectangle') {
      const from = this.#snapped(this.#point(at));
      this.#gesture = { kind: 'rectangle', from, to: from };
    } else if (tool === 'polygon') this.#addCorner(at);
    else {
      this.#gesture = { kind: 'brush', painted: NOTHING };
      this.#brushAt(at);
    }
    this.#schedule();
  };

  #beginSelect(at: Pointer, isAdding: boolean): void {
    const { drawing, selection, level, isReadOnly } = this.#scene;
    const handle = this.#handle();
    const point = this.#point(at);
    if (handle && Math.hypot(at.x - handle.at.x, at.y - handle.at.y) < 14) {
      const from = direction(handle.around, point);
      this.#gesture = { kind: 'turn', around: handle.around, from, degrees: 0 };
      return;
    }
    const target = drawing && targetAt(drawing, point, level);
    if (!target) {
      const before = isAdding ? selection : NOTHING;
      this.#gesture = { kind: 'box', from: point, to: point, before };
      if (!isAdding && selection.size > 0) this.#events.select(NOTHING);
      return;
    }
    if (isAdding) return this.#events.select(toggled(selection, target));
    if (!isTargetSelected(selection, target)) this.#events.select(only(target));
    if (level === 'sections' && !isReadOnly)
      this.#gesture = { kind: 'move', from: point, dx: 0, dy: 0, guides: [] };
  }

  #addCorner(at: Pointer): void {
    const corner = this.#snapped(this.#point(at));
    const first = this.#polygon[0];
    if (first && this.#polygon.length >= 3) {
      const start = toScreen(this.#view, first.x, first.y);
      if (Math.hypot(start.x - at.x, start.y - at.y) < 12) return this.finishPolygon();
    }
    this.#polygon = [...this.#polygon, corner];
  }

  #brushAt(at: Pointer): void {
    const { drawing, level } = this.#scene;
    if (this.#gesture?.kind !== 'brush' || !drawing) return;
    const target = targetAt(drawing, this.#point(at), level);
    if (target) this.#gesture.painted = withTarget(this.#gesture.painted, target);
  }

  #onMove = (event: PointerEvent): void => {
    const at = this.#local(event);
    const before = this.#pointers.get(event.pointerId);
    if (!before) {
      if (this.#polygon.length > 0) {
        this.#polygonEnd = this.#snapped(this.#point(at));
        this.#schedule();
      }
      return;
    }
    if (this.#pointers.size > 1) this.#pinch(event.pointerId, before, at);
    else this.#drag(before, at);
    this.#pointers.set(event.pointerId, at);
    this.#schedule();
  };

  #drag(before: Pointer, at: Pointer): void {
    const gesture = this.#gesture;
    if (!gesture) return;
    const point = this.#point(at);
    if (gesture.kind === 'pan') this.#moveTo(pan(this.#view, at.x - before.x, at.y - before.y));
    else if (gesture.kind === 'box') gesture.to = point;
    else if (gesture.kind === 'rectangle') gesture.to = this.#snapped(point);
    else if (gesture.kind === 'brush') this.#brushAt(at);
    else if (gesture.kind === 'turn') {
      const degrees = direction(gesture.around, point) - gesture.from;
      gesture.degrees = this.#scene.isSnapping ? snapAngle(degrees) : Math.round(degrees);
    } else this.#dragSections(gesture, point);
  }

  #dragSections(gesture: Extract<Gesture, { kind: 'move' }>, point: Point): void {
    const { drawing, selection, isSnapping } = this.#scene;
    if (!drawing) return;
    const [dx, dy] = [point.x - gesture.from.x, point.y - gesture.from.y];
    if (!isSnapping) {
      Object.assign(gesture, { dx, dy, guides: [] });
      return;
    }
    const isOwn = (index: number) => selection.has(drawing.layout.sections[index]!.key);
    const all = drawing.hall.sections.map((section) => section.bounds);
    const own = joinBounds(all.filter((_, index) => isOwn(index)));
    const neighbours = all.filter((_, index) => !isOwn(index));
    const reach = SNAP_PIXELS / this.#view.scale;
    Object.assign(gesture, snapMove(own, dx, dy, neighbours, reach));
  }

  #pinch(id: number, before: Pointer, at: Pointer): void {
    const other = [...this.#pointers].find(([otherId]) => otherId !== id)?.[1];
    if (!other) return;
    const from = Math.hypot(before.x - other.x, before.y - other.y);
    const to = Math.hypot(at.x - other.x, at.y - other.y);
    const moved = pan(this.#view, (at.x - before.x) / 2, (at.y - before.y) / 2);
    const zoom = from > 0 ? to / from : 1;
    const [x, y] = [(at.x + other.x) / 2, (at.y + other.y) / 2];
    this.#moveTo(zoomAt(moved, x, y, moved.scale * zoom));
  }

  #onUp = (event: PointerEvent): void => {
    const at = this.#local(event);
    this.#pointers.delete(event.pointerId);
    if (this.#pointers.size > 0) return;
    const gesture = this.#gesture;
    this.#gesture = null;
    this.#schedule();
    if (!gesture || gesture.kind === 'pan') return;
    const hasMoved = Math.hypot(at.x - this.#downAt.x, at.y - this.#downAt.y) > TAP_PIXELS;
    this.#finish(gesture, hasMoved);
  };

  #finish(gesture: Gesture, hasMoved: boolean): void {
    const { drawing, level } = this.#scene;
    if (gesture.kind === 'brush') {
      if (gesture.painted.size > 0) this.#events.brush(gesture.painted);
      return;
    }
    if (!hasMoved) return;
    if (gesture.kind === 'move') {
      const [dx, dy] = [Math.round(gesture.dx), Math.round(gesture.dy)];
      if (dx !== 0 || dy !== 0) this.#events.move(dx, dy);
    } else if (gesture.kind === 'turn') {
      if (gesture.degrees !== 0) this.#events.turn(gesture.degrees);
    } else if (gesture.kind === 'rectangle') this.#events.rectangle(gesture.from, gesture.to);
    else if (gesture.kind === 'box' && drawing) {
      const seats = seatsBetween(drawing, gesture.from, gesture.to);
      const { layout, hall } = drawing;
      this.#events.select(selectSeats(layout, hall, seats, level, gesture.before));
    }
  }

  #onCancel = (event: PointerEvent): void => {
    this.#pointers.delete(event.pointerId);
    this.#gesture = null;
    this.#schedule();
  };

  #onWheel = (event: WheelEvent): void => {
    event.preventDefault();
    const { x, y } = this.#local(event);
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 24 : 1;
    const zoom = Math.exp((-event.deltaY * lines) / (event.ctrlKey ? 120 : 400));
    this.#moveTo(zoomAt(this.#view, x, y, this.#view.scale * zoom));
  };
}

function direction(from: Point, to: Point): number {
  return (Math.atan2(to.y - from.y, to.x - from.x) * 180) / Math.PI;
}

function grown(area: Bounds, by: number): Bounds {
  return {
    left: area.left - by,
    right: area.right + by,
    top: area.top - by,
    bottom: area.bottom + by,
  };
}
