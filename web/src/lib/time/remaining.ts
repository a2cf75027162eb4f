/** The parts of a remaining time, as a countdown shows them. */
export interface Remaining {
  readonly days: number;
  readonly hours: number;
  readonly minutes: number;
  readonly seconds: number;
  readonly totalSeconds: number;
}

/** Rounds up, so that a countdown ends when the time has come and not a second before. */
export function remaining(untilMs: number, nowMs: number): Remaining {
  const totalSeconds = Math.max(0, Math.ceil((untilMs - nowMs) / 1000));
  return {
    days: Math.floor(totalSeconds / 86_400),
    hours: Math.floor(totalSeconds / 3_600) % 24,
    minutes: Math.floor(totalSeconds / 60) % 60,
    seconds: totalSeconds % 60,
    totalSeconds,
  };
}

export function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}
