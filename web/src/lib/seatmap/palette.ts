/** Colours and marks of the grades. A mark is needed too: not everybody tells the colours apart. */
export type GradeMark = 'plain' | 'stripe' | 'dot' | 'bar' | 'cross' | 'ring';

export interface GradeLook {
  readonly fill: string;
  /** Numbers and marks on the fill. */
  readonly on: string;
  readonly mark: GradeMark;
}

const MARKS: readonly GradeMark[] = ['plain', 'stripe', 'dot', 'bar', 'cross', 'ring'];
/** Dark enough for white figures, and far apart in lightness for those who see no hue. */
const LIGHT = ['#7a2fd0', '#0b6fc2', '#0b7d5c', '#9a6400', '#b02a6b', '#4d5566'];
const DARK = ['#c79bff', '#6cb8ff', '#5fd6a8', '#f0bd5a', '#ff93c4', '#b4bccb'];

export interface Palette {
  readonly ground: string;
  readonly taken: string;
  readonly ink: string;
  readonly inkSoft: string;
  readonly paper: string;
  readonly chosen: string;
  readonly onChosen: string;
  grade(index: number): GradeLook;
}

export function palette(isDark: boolean): Palette {
  const fills = isDark ? DARK : LIGHT;
  return {
    ground: isDark ? '#16181c' : '#f3f4f6',
    taken: isDark ? '#2a2d34' : '#e0e3e8',
    ink: isDark ? '#f4f5f7' : '#131418',
    inkSoft: isDark ? '#c3c7d0' : '#474b55',
    paper: isDark ? '#101114' : '#ffffff',
    chosen: isDark ? '#ff5b38' : '#ff4b26',
    onChosen: '#14090a',
    grade: (index) => ({
      fill: fills[index % fills.length]!,
      on: isDark ? '#101114' : '#ffffff',
      mark: MARKS[(index + Math.floor(index / fills.length)) % MARKS.length]!,
    }),
  };
}

/** The colours that the user's system forces; grades differ by their marks. */
export const SYSTEM_PALETTE: Palette = {
  ground: 'Canvas',
  taken: 'GrayText',
  ink: 'CanvasText',
  inkSoft: 'CanvasText',
  paper: 'Canvas',
  chosen: 'Highlight',
  onChosen: 'HighlightText',
  grade: (index) => ({
    fill: 'CanvasText',
    on: 'Canvas',
    mark: MARKS[index % MARKS.length]!,
  }),
};
