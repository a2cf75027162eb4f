/** Snapping: small corrections of a move so that things line up. */
import type { Bounds } from '$lib/seatmap/hall';

export const GRID_CM = 50;
export const ANGLE_STEP_DEGREES = 15;

/** A line along which something lines up, for the eye. */
export interface Guide {
  readonly axis: 'x' | 'y';
  readonly at: number;
}

export interface Snapped {
  readonly dx: number;
  readonly dy: number;
  readonly guides: readonly Guide[];
}

/**
 * Corrects a move of `bounds` by (dx, dy): edges and middles of neighbours within `reach` win over
 * the grid.
 */
export function snapMove(
  bounds: Bounds,
  dx: number,
  dy: number,
  neighbours: readonly Bounds[],
  reach: number,
): Snapped {
  const x = snapAxis(
    [bounds.left, (bounds.left + bounds.right) / 2, bounds.right].map((at) => at + dx),
    [0, ...neighbours.flatMap((one) => [one.left, (one.left + one.right) / 2, one.right])],
    reach,
  );
  const y = snapAxis(
    [bounds.top, (bounds.top + bounds.bottom) / 2, bounds.bottom].map((at) => at + dy),
    neighbours.flatMap((one) => [one.top, (one.top + one.bottom) / 2, one.bottom]),
    reach,
  );
  const guides: Guide[] = [];
  if (x) guides.push({ axis: 'x', at: x.at });
  if (y) guides.push({ axis: 'y', at: y.at });
  return {
    dx: dx + (x ? x.correction : gridCorrection(bounds.left + dx)),
    dy: dy + (y ? y.correction : gridCorrection(bounds.top + dy)),
    guides,
  };
}

function snapAxis(
  own: readonly number[],
  others: readonly number[],
  reach: number,
): { correction: number; at: number } | null {
  let best: { correction: number; at: number } | null = null;
  for (const from of own)
    for (const at of others) {
      const correction = at - from;
      if (Math.abs(correction) > reach) continue;
      if (!best || Math.abs(correction) < Math.abs(best.correction)) best = { correction, at };
    }
  return best;
}

function gridCorrection(at: number): number {
  return snapToGrid(at) - at;
}

export function snapToGrid(value: number): number {
  return Math.round(value / GRID_CM) * GRID_CM;
}

export function snapAngle(degrees: number): number {
  return Math.round(degrees / ANGLE_STEP_DEGREES) * ANGLE_STEP_DEGREES;
}
