/** Which part of the hall is on the screen. Immutable: each move makes a new one. */
import type { Bounds } from './hall';

export interface Viewport {
  /** CSS pixels of the canvas. */
  readonly width: number;
  readonly height: number;
  /** The point of the hall in the middle of the screen. */
  readonly x: number;
  readonly y: number;
  /** Pixels per centimetre. */
  readonly scale: number;
}

export interface Insets {
  readonly top: number;
  readonly bottom: number;
}

const NO_INSETS: Insets = { top: 0, bottom: 0 };
const MARGIN_PIXELS = 16;

/** Shows the whole area, with room for what lies over the canvas. */
export function fit(
  width: number,
  height: number,
  area: Bounds,
  insets: Insets = NO_INSETS,
): Viewport {
  const innerWidth = Math.max(1, width - 2 * MARGIN_PIXELS);
  const innerHeight = Math.max(1, height - insets.top - insets.bottom - 2 * MARGIN_PIXELS);
  const scale = Math.min(
    innerWidth / Math.max(1, area.right - area.left),
    innerHeight / Math.max(1, area.bottom - area.top),
  );
  return {
    width,
    height,
    x: (area.left + area.right) / 2,
    y: (area.top + area.bottom) / 2 + (insets.bottom - insets.top) / 2 / scale,
    scale,
  };
}

export function toScreen(view: Viewport, x: number, y: number): { x: number; y: number } {
  return {
    x: (x - view.x) * view.scale + view.width / 2,
    y: (y - view.y) * view.scale + view.height / 2,
  };
}

export function toHall(view: Viewport, x: number, y: number): { x: number; y: number } {
  return {
    x: (x - view.width / 2) / view.scale + view.x,
    y: (y - view.height / 2) / view.scale + view.y,
  };
}

/** The part of the hall that is visible, and so many pixels around it. */
export function visibleArea(view: Viewport, marginPixels = 0): Bounds {
  const halfWidth = (view.width / 2 + marginPixels) / view.scale;
  const halfHeight = (view.height / 2 + marginPixels) / view.scale;
  return {
    left: view.x - halfWidth,
    right: view.x + halfWidth,
    top: view.y - halfHeight,
    bottom: view.y + halfHeight,
  };
}

export function pan(view: Viewport, dx: number, dy: number): Viewport {
  return { ...view, x: view.x - dx / view.scale, y: view.y - dy / view.scale };
}

/** Zooms so that the point of the hall under (x, y) stays there. */
export function zoomAt(view: Viewport, x: number, y: number, scale: number): Viewport {
  const fixed = toHall(view, x, y);
  return {
    ...view,
    scale,
    x: fixed.x - (x - view.width / 2) / scale,
    y: fixed.y - (y - view.height / 2) / scale,
  };
}

/** Keeps the scale in its limits and part of the hall in the middle of the screen. */
export function clamp(view: Viewport, area: Bounds, scaleMin: number, scaleMax: number): Viewport {
  return {
    ...view,
    scale: Math.min(scaleMax, Math.max(scaleMin, view.scale)),
    x: Math.min(area.right, Math.max(area.left, view.x)),
    y: Math.min(area.bottom, Math.max(area.top, view.y)),
  };
}

export function resize(view: Viewport, width: number, height: number): Viewport {
  return { ...view, width, height };
}

/** Between two views, for an animation: `share` goes from 0 to 1. */
export function between(from: Viewport, to: Viewport, share: number): Viewport {
  const mix = (a: number, b: number) => a + (b - a) * share;
  const scale = Math.exp(mix(Math.log(from.scale), Math.log(to.scale)));
  return { ...to, scale, x: mix(from.x, to.x), y: mix(from.y, to.y) };
}
