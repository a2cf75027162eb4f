/** The geometry of a hall's sketch on a canvas of 320 × 190: a stage, and an arc for each grade. */
export interface Band {
  readonly name: string;
  readonly path: string;
  readonly width: number;
  /** Dashes that leave two aisles free. */
  readonly aisles: string;
  readonly labelY: number;
}

export const STAGE = 'M108 6H212L203 32H117Z';
const GRADES_MAX = 6;
const [MIDDLE_X, MIDDLE_Y] = [160, -40];
const [FIRST_RADIUS, LAST_RADIUS] = [92, 224];
const GAP = 4;
/** Half of the angle that a row covers, seen from the middle. */
const HALF_ANGLE = (38 * Math.PI) / 180;
const AISLE = 7;

export function hallBands(grades: readonly string[]): Band[] {
  const shown = grades.slice(0, GRADES_MAX);
  const step = (LAST_RADIUS - FIRST_RADIUS) / Math.max(shown.length, 1);
  return shown.map((name, index) => {
    const radius = FIRST_RADIUS + step * (index + 0.5);
    const [x, y] = [radius * Math.sin(HALF_ANGLE), radius * Math.cos(HALF_ANGLE)];
    const length = 2 * HALF_ANGLE * radius;
    const [side, middle] = [(length / 4 - AISLE).toFixed(1), (length / 2).toFixed(1)];
    const from = `${(MIDDLE_X - x).toFixed(1)} ${(MIDDLE_Y + y).toFixed(1)}`;
    const to = `${(MIDDLE_X + x).toFixed(1)} ${(MIDDLE_Y + y).toFixed(1)}`;
    return {
      name,
      path: `M${from}A${radius} ${radius} 0 0 0 ${to}`,
      width: step - GAP,
      aisles: `${side} ${AISLE} ${middle} ${AISLE} ${side} 1000`,
      labelY: MIDDLE_Y + radius,
    };
  });
}
