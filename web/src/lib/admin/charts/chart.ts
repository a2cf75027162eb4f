/** What charts have in common: colours of the theme, and how times are written. */
export type Swatch = 'ink' | 'heat' | 'good' | 'warn' | 'bad' | 'faint';

export interface ChartLine {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** A token of the theme, such as `--heat`. */
  readonly colour: string;
  readonly swatch: Swatch;
  /** Not by colour alone. */
  readonly isDashed?: boolean;
  readonly isFilled?: boolean;
  /** The token of the area below the line. */
  readonly fill?: string;
}

export interface ChartRow {
  readonly at: number;
  readonly values: readonly (number | null)[];
}

/** A token of the theme as a canvas understands it: `light-dark()` is resolved by an element. */
export function chartColour(token: string): string {
  if (token === '--font-text') return getComputedStyle(document.body).fontFamily;
  const probe = document.createElement('span');
  probe.hidden = true;
  document.body.append(probe);
  probe.style.color = `var(${token})`;
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

/** Calls back when the page becomes dark or light; returns how to stop. */
export function onThemeChange(callback: () => void): () => void {
  const media = matchMedia('(prefers-color-scheme: dark)');
  const observer = new MutationObserver(callback);
  media.addEventListener('change', callback);
  observer.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  return () => {
    media.removeEventListener('change', callback);
    observer.disconnect();
  };
}

const CLOCK = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'Asia/Seoul',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});

/** 20:00:05, in Korea. */
export function clockText(second: number): string {
  return CLOCK.format(second * 1_000);
}

/** 20:00, in Korea. */
export function minuteText(second: number): string {
  return clockText(second).slice(0, 5);
}
