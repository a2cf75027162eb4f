/**
 * A picture of the hall that is a little larger than the screen. While the hall moves the picture is
 * moved, and painted again only when it no longer covers the screen, is too coarse or is out of date.
 */
import { resize, toScreen, visibleArea, type Viewport } from './viewport';

/** So many pixels of the picture are around the screen. */
const PICTURE_MARGIN = 160;
/** A moving picture may be this much enlarged or reduced. */
const ENLARGED_MAX = 1.8;
const REDUCED_MIN = 0.6;
const PIXEL_RATIO_MAX = 2;

export class HallPicture {
  readonly #canvas = document.createElement('canvas');
  readonly #context = context2d(this.#canvas);
  #view: Viewport | null = null;
  #isStale = true;

  /** It has to be painted again, because what it shows has changed. */
  expire(): void {
    this.#isStale = true;
  }

  mustBePainted(view: Viewport, isMoving: boolean): boolean {
    if (!this.#view || this.#isStale || !covers(this.#view, view)) return true;
    const zoom = view.scale / this.#view.scale;
    return isMoving ? zoom > ENLARGED_MAX || zoom < REDUCED_MIN : zoom !== 1;
  }

  /** Paints what is around the screen. */
  paint(screen: Viewport, painter: (context: CanvasRenderingContext2D, view: Viewport) => void) {
    const ratio = pixelRatio();
    const view = resize(
      screen,
      screen.width + 2 * PICTURE_MARGIN,
      screen.height + 2 * PICTURE_MARGIN,
    );
    const [width, height] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
    if (this.#canvas.width !== width || this.#canvas.height !== height) {
      this.#canvas.width = width;
      this.#canvas.height = height;
    }
    this.#context.setTransform(ratio, 0, 0, ratio, 0, 0);
    painter(this.#context, view);
    this.#view = view;
    this.#isStale = false;
  }

  /** Copies the part that is on the screen. */
  show(context: CanvasRenderingContext2D, screen: Viewport, ground: string): void {
    const taken = this.#view;
    if (!taken) return;
    const ratio = pixelRatio();
    const corner = visibleArea(taken);
    const from = toScreen(screen, corner.left, corner.top);
    const zoom = screen.scale / taken.scale;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = ground;
    context.fillRect(0, 0, screen.width, screen.height);
    context.drawImage(this.#canvas, from.x, from.y, taken.width * zoom, taken.height * zoom);
  }
}

function covers(taken: Viewport, screen: Viewport): boolean {
  const [has, needs] = [visibleArea(taken), visibleArea(screen)];
  return (
    has.left <= needs.left &&
    has.right >= needs.right &&
    has.top <= needs.top &&
    has.bottom >= needs.bottom
  );
}

export function pixelRatio(): number {
  return Math.min(PIXEL_RATIO_MAX, window.devicePixelRatio || 1);
}

export function context2d(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const context = canvas.getContext('2d', { alpha: false });
  if (!context) throw new Error('this browser cannot draw on a canvas');
  return context;
}
