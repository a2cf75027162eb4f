/**
 * The seat map on a canvas: what is on the screen and how fingers, wheel and keys move it. While
 * it moves, a picture of the surroundings is pushed around; it is drawn anew when it comes to rest
 * or the picture no longer covers the screen.
 */
import { SeatGrid } from './grid';
import { type Bounds, type Hall, joinBounds } from './hall';
import { paint, type Scene, sectionAt, showsSeats } from './paint';
import { palette, type Palette, SYSTEM_PALETTE } from './palette';
import type { SeatStatuses } from './statuses';
import { context2d, HallPicture, pixelRatio } from './hallPicture';
import {
  between,
  clamp,
  fit,
  pan,
  resize,
  toHall,
  toScreen,
  type Viewport,
  zoomAt,
} from './viewport';

export interface SeatMapEvents {
  pick(seat: number): void;
  cursor(seat: number): void;
  /** Null when the pointer is over no seat. */
  hover(seat: number | null, x: number, y: number): void;
  /** Whether single seats can be seen now. */
  level(hasSeats: boolean): void;
  /** The section in the middle while single seats can be seen. */
  section?(index: number | null): void;
}

export interface SeatMapTexts {
  readonly stage: string;
  readonly soldOut: string;
}

const SEAT_PIXELS_MAX = 52;
const SEAT_PIXELS_NEAR = 30;
/** A finger needs seats of this size; before, a tap comes nearer. */
const TOUCH_PIXELS_MIN = 20;
const MOUSE_PIXELS_MIN = 9;
const TAP_PIXELS = 8;
const REST_MS = 120;
const FLIGHT_MS = 320;
const FADE_MS = 1_400;
const FADE_FRAME_MS = 70;
/** While the map moves, changes of others wait: painting them at once would make it stutter. */
const MOVING_REFRESH_MS = 400;
/** A hint and the buttons lie over the lower edge while the whole hall is shown. */
const HINT_INSETS = { top: 0, bottom: 60 };

interface Pointer {
  x: number;
  y: number;
  startX: number;
  startY: number;
}

export class SeatMap {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #picture = new HallPicture();
  readonly #hall: Hall;
  readonly #area: Bounds;
  readonly #grid: SeatGrid;
  readonly #events: SeatMapEvents;
  #scene: Scene;
  #view: Viewport;
  #home: Viewport;
  #frame = 0;
  #pointers = new Map<number, Pointer>();
  #hasMoved = false;
  #movedAt = 0;
  #flight: { from: Viewport; to: Viewport; startedAt: number } | null = null;
  #fading = new Map<number, number>();
  #fadedAt = 0;
  /** Seats have changed since the picture was painted. */
  #isOutdated = false;
  #refreshedAt = 0;
  #restTimer: ReturnType<typeof setTimeout> | undefined;
  #isNear = false;
  #section: number | null = null;

  constructor(
    canvas: HTMLCanvasElement,
    hall: Hall,
    statuses: SeatStatuses,
    texts: SeatMapTexts,
    events: SeatMapEvents,
  ) {
    this.#canvas = canvas;
    this.#hall = hall;
    this.#events = events;
    this.#grid = new SeatGrid(hall);
    this.#context = context2d(canvas);
    // The stage belongs to what is shown.
    this.#area = joinBounds([hall.bounds, { left: -150, right: 150, top: -180, bottom: 0 }]);
    this.#scene = {
      hall,
      grid: this.#grid,
      statuses,
      palette: currentPalette(),
      chosen: new Set(),
      gradesShown: new Set(),
      cursor: null,
      fading: this.#fading,
      stageLabel: texts.stage,
      soldOutLabel: texts.soldOut,
      font: getComputedStyle(canvas).fontFamily,
    };
    this.#home = fit(1, 1, this.#area);
    this.#view = this.#home;
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
    canvas.addEventListener('pointerleave', () => this.#events.hover(null, 0, 0), { signal });
    canvas.addEventListener('wheel', this.#onWheel, { signal, passive: false });
    canvas.addEventListener('keydown', this.#onKey, { signal });
    canvas.addEventListener('blur', () => this.#change({ cursor: null }), { signal });
    for (const looks of ['(prefers-color-scheme: dark)', '(forced-colors: active)'])
      matchMedia(looks).addEventListener('change', this.#onTheme, { signal });
    const theme = new MutationObserver(this.#onTheme);
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    const size = new ResizeObserver(() => this.#resize());
    size.observe(canvas);
    void document.fonts?.ready.then(() => this.#redraw());
    this.#resize();
    return () => {
      listeners.abort();
      theme.disconnect();
      size.disconnect();
      cancelAnimationFrame(this.#frame);
      clearTimeout(this.#restTimer);
    };
  }

  setChosen(chosen: ReadonlySet<number>): void {
    this.#change({ chosen });
  }

  setGradesShown(gradesShown: ReadonlySet<number>): void {
    this.#change({ gradesShown });
  }

  /** Draws what the statuses say now; seats that have just been taken fade. */
  statusesChanged(taken: readonly number[]): void {
    // From far away no single seat is seen.
    if (!isStill() && this.#isNear)
      for (const seat of taken) this.#fading.set(seat, performance.now());
    this.#isOutdated = true;
    this.#schedule();
  }

  zoomBy(factor: number): void {
    const { width, height, scale } = this.#view;
    this.#flyTo(zoomAt(this.#view, width / 2, height / 2, scale * factor));
  }

  showAll(): void {
    this.#flyTo(this.#home);
  }

  #showSection(index: number): void {
    const section = this.#hall.sections[index];
    if (!section) return;
    const whole = fit(this.#view.width, this.#view.height, section.bounds);
    const near = Math.max(whole.scale, TOUCH_PIXELS_MIN / section.seatPitch);
    this.#flyTo({ ...whole, scale: near });
  }

  showSeats(seats: readonly number[]): void {
    if (seats.length === 0) return;
    const points = seats.map((seat) => ({ x: this.#hall.x[seat]!, y: this.#hall.y[seat]! }));
    const area = joinBounds(
      points.map(({ x, y }) => ({ left: x - 200, right: x + 200, top: y - 200, bottom: y + 200 })),
    );
    const whole = fit(this.#view.width, this.#view.height, area);
    const scale = Math.min(whole.scale, SEAT_PIXELS_NEAR / this.#hall.pitch);
    this.#flyTo({ ...whole, scale: Math.max(scale, TOUCH_PIXELS_MIN / this.#hall.pitch) });
  }

  #screenOf(seat: number): { x: number; y: number } {
    return toScreen(this.#view, this.#hall.x[seat]!, this.#hall.y[seat]!);
  }

  #change(changes: Partial<Scene>): void {
    this.#scene = { ...this.#scene, ...changes };
    this.#redraw();
  }

  #redraw(): void {
    this.#picture.expire();
    this.#schedule();
  }

  #schedule(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(this.#onFrame);
  }

  #resize(): void {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (width === 0 || height === 0) return;
    const wasHome = this.#view === this.#home;
    const ratio = pixelRatio();
    this.#canvas.width = Math.round(width * ratio);
    this.#canvas.height = Math.round(height * ratio);
    this.#home = fit(width, height, this.#area, HINT_INSETS);
    this.#view = wasHome ? this.#home : this.#limited(resize(this.#view, width, height));
    this.#picture.expire();
    this.#redraw();
  }

  #onTheme = (): void => this.#change({ palette: currentPalette() });

  #onFrame = (now: number): void => {
    this.#frame = 0;
    this.#advanceFlight(now);
    const isMoving =
      this.#pointers.size > 0 || this.#flight !== null || now - this.#movedAt < REST_MS;
    this.#advanceFading(now, isMoving);
    this.#refresh(now, isMoving);
    if (this.#picture.mustBePainted(this.#view, isMoving))
      this.#picture.paint(this.#view, (context, view) => this.#paintPicture(context, view));
    this.#picture.show(this.#context, this.#view, this.#scene.palette.ground);
    const isNear = showsSeats(this.#hall, this.#view);
    if (isNear !== this.#isNear) {
      this.#isNear = isNear;
      this.#events.level(isNear);
    }
    const section = isNear ? sectionAt(this.#hall, this.#view.x, this.#view.y) : null;
    if (section !== this.#section) {
      this.#section = section;
      this.#events.section?.(section);
    }
    if (this.#flight || this.#fading.size > 0) this.#schedule();
  };

  #advanceFlight(now: number): void {
    if (!this.#flight) return;
    const { from, to, startedAt } = this.#flight;
    const share = Math.min(1, Math.max(0, (now - startedAt) / FLIGHT_MS));
    const eased = 1 - (1 - share) ** 3;
    this.#view = share === 1 ? to : between(from, to, eased);
    if (share === 1) {
      this.#flight = null;
      this.#picture.expire();
    }
  }

  #refresh(now: number, isMoving: boolean): void {
    if (!this.#isOutdated || (isMoving && now - this.#refreshedAt < MOVING_REFRESH_MS)) return;
    this.#isOutdated = false;
    this.#refreshedAt = now;
    this.#picture.expire();
  }

  #advanceFading(now: number, isMoving: boolean): void {
    const frameMs = isMoving ? MOVING_REFRESH_MS : FADE_FRAME_MS;
    if (this.#fading.size === 0 || now - this.#fadedAt < frameMs) return;
    this.#fadedAt = now;
    this.#picture.expire();
    for (const [seat, startedAt] of this.#fading)
      if (now - startedAt > FADE_MS) this.#fading.delete(seat);
  }

  #paintPicture(context: CanvasRenderingContext2D, view: Viewport): void {
    const now = performance.now();
    const fading = new Map(
      [...this.#fading].map(([seat, startedAt]) => [
        seat,
        Math.max(0, 1 - (now - startedAt) / FADE_MS),
      ]),
    );
    paint(context, { ...this.#scene, fading }, view);
  }

  #limited(view: Viewport): Viewport {
    const scaleMin = Math.min(this.#home.scale * 0.85, SEAT_PIXELS_MAX / this.#hall.pitch);
    const scaleMax = Math.max(this.#home.scale, SEAT_PIXELS_MAX / this.#hall.pitch);
    return clamp(view, this.#area, scaleMin, scaleMax);
  }

  #moveTo(view: Viewport): void {
    this.#flight = null;
    this.#view = this.#limited(view);
    this.#movedAt = performance.now();
    this.#schedule();
    // When it has come to rest, the picture is drawn sharply.
    clearTimeout(this.#restTimer);
    this.#restTimer = setTimeout(() => this.#schedule(), REST_MS + 10);
  }

  #flyTo(view: Viewport): void {
    const to = view === this.#home ? view : this.#limited(view);
    if (isStill()) {
      this.#flight = null;
      this.#view = to;
      this.#redraw();
      return;
    }
    this.#flight = { from: this.#view, to, startedAt: performance.now() };
    this.#schedule();
  }

  #local(event: MouseEvent): { x: number; y: number } {
    const box = this.#canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  #onDown = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    const { x, y } = this.#local(event);
    this.#canvas.setPointerCapture(event.pointerId);
    if (this.#pointers.size === 0) this.#hasMoved = false;
    this.#pointers.set(event.pointerId, { x, y, startX: x, startY: y });
    this.#events.hover(null, 0, 0);
  };

  #onMove = (event: PointerEvent): void => {
    const { x, y } = this.#local(event);
    const pointer = this.#pointers.get(event.pointerId);
    if (!pointer) {
      if (event.pointerType === 'mouse') this.#hover(x, y);
      return;
    }
    if (Math.hypot(x - pointer.startX, y - pointer.startY) > TAP_PIXELS) this.#hasMoved = true;
    if (this.#pointers.size === 1) {
      if (this.#hasMoved) this.#moveTo(pan(this.#view, x - pointer.x, y - pointer.y));
    } else {
      this.#hasMoved = true;
      this.#pinch(event.pointerId, pointer, x, y);
    }
    if (this.#hasMoved || this.#pointers.size > 1) {
      pointer.x = x;
      pointer.y = y;
    }
  };

  #pinch(id: number, pointer: Pointer, x: number, y: number): void {
    const other = [...this.#pointers].find(([otherId]) => otherId !== id)?.[1];
    if (!other) return;
    const before = Math.hypot(pointer.x - other.x, pointer.y - other.y);
    const after = Math.hypot(x - other.x, y - other.y);
    const middleX = (x + other.x) / 2;
    const middleY = (y + other.y) / 2;
    const moved = pan(this.#view, (x - pointer.x) / 2, (y - pointer.y) / 2);
    const zoom = before > 0 ? after / before : 1;
    this.#moveTo(zoomAt(moved, middleX, middleY, moved.scale * zoom));
  }

  #onUp = (event: PointerEvent): void => {
    const pointer = this.#pointers.get(event.pointerId);
    this.#pointers.delete(event.pointerId);
    if (this.#pointers.size > 0) return;
    this.#schedule();
    if (pointer && !this.#hasMoved) this.#tap(pointer.startX, pointer.startY, event.pointerType);
  };

  #onCancel = (event: PointerEvent): void => {
    this.#pointers.delete(event.pointerId);
    this.#hasMoved = true;
    this.#schedule();
  };

  #tap(x: number, y: number, pointerType: string): void {
    const point = toHall(this.#view, x, y);
    const pixels = this.#hall.pitch * this.#view.scale;
    const needed = pointerType === 'mouse' ? MOUSE_PIXELS_MIN : TOUCH_PIXELS_MIN;
    if (pixels >= needed) {
      const reach = Math.max(this.#hall.pitch * 0.75, 18 / this.#view.scale);
      const seat = this.#grid.nearest(point.x, point.y, reach);
      if (seat !== null) this.#events.pick(seat);
      return;
    }
    if (!showsSeats(this.#hall, this.#view)) {
      const section = sectionAt(this.#hall, point.x, point.y);
      if (section !== null) this.#showSection(section);
      return;
    }
    this.#flyTo({ ...this.#view, ...point, scale: SEAT_PIXELS_NEAR / this.#hall.pitch });
  }

  #hover(x: number, y: number): void {
    if (!showsSeats(this.#hall, this.#view)) return this.#events.hover(null, x, y);
    const point = toHall(this.#view, x, y);
    this.#events.hover(this.#grid.nearest(point.x, point.y, this.#hall.pitch * 0.6), x, y);
  }

  #onWheel = (event: WheelEvent): void => {
    event.preventDefault();
    const { x, y } = this.#local(event);
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 24 : 1;
    const zoom = Math.exp((-event.deltaY * lines) / (event.ctrlKey ? 120 : 400));
    this.#moveTo(this.#zoomed(x, y, this.#view.scale * zoom));
    this.#events.hover(null, 0, 0);
  };

  /** Within the limits, so that the map does not slide when it cannot zoom further. */
  #zoomed(x: number, y: number, scale: number): Viewport {
    return zoomAt(this.#view, x, y, this.#limited({ ...this.#view, scale }).scale);
  }

  #onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = ARROWS[event.key];
    if (step) this.#moveCursor(...step);
    else if (event.key === 'Enter' || event.key === ' ') this.#pickCursor();
    else if (event.key === '+' || event.key === '=') this.zoomBy(1.5);
    else if (event.key === '-') this.zoomBy(1 / 1.5);
    else if (event.key === '0') this.showAll();
    else return;
    event.preventDefault();
  };

  #moveCursor(stepX: number, stepY: number): void {
    const { cursor } = this.#scene;
    const next =
      cursor === null ? this.#seatInMiddle() : this.#grid.neighbour(cursor, stepX, stepY);
    if (next === null) return;
    this.#change({ cursor: next });
    this.#keepInSight(next);
    this.#events.cursor(next);
  }

  #seatInMiddle(): number | null {
    const { statuses } = this.#scene;
    const { left, right, top, bottom } = this.#hall.bounds;
    const reach = Math.max(right - left, bottom - top);
    const isFree = (seat: number) => statuses.isFree(seat);
    return (
      this.#grid.nearest(this.#view.x, this.#view.y, reach, isFree) ??
      this.#grid.nearest(this.#view.x, this.#view.y, reach)
    );
  }

  #keepInSight(seat: number): void {
    const { x, y } = this.#screenOf(seat);
    const { width, height, scale } = this.#view;
    const isClose = scale * this.#hall.pitch >= TOUCH_PIXELS_MIN;
    const isInside = x > 60 && x < width - 60 && y > 60 && y < height - 60;
    if (isClose && isInside && !this.#flight) return;
    const nearer = isClose ? scale : SEAT_PIXELS_NEAR / this.#hall.pitch;
    this.#flyTo({
      ...this.#view,
      x: this.#hall.x[seat]!,
      y: this.#hall.y[seat]!,
      scale: this.#flight ? this.#flight.to.scale : nearer,
    });
  }

  #pickCursor(): void {
    if (this.#scene.cursor === null) this.#moveCursor(0, 1);
    else this.#events.pick(this.#scene.cursor);
  }
}

const ARROWS: Record<string, readonly [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

function isStill(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}

/** What the user has chosen, or what the system forces. */
export function currentPalette(): Palette {
  const isForced = matchMedia('(forced-colors: active)').matches;
  return isForced ? SYSTEM_PALETTE : palette(isDark());
}

function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}
