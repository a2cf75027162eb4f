/** Numbering schemes: the labels of rows and the numbers of seats. */
import type { EditorRow } from './model';
import { indexOfNumber, numberAt } from './model';

export interface SeatScheme {
  /** Where the first number is, seen from the audience. */
  readonly from: 'left' | 'right';
  readonly parity: 'all' | 'odd' | 'even';
  readonly start: number;
}

/** Gives a row other numbers. Seats keep what they are: a wheelchair seat stays where it is. */
export function renumber(row: EditorRow, firstNumber: number, numberStep: number): EditorRow {
  const renumbered = { ...row, firstNumber, numberStep };
  const moved = (numbers: readonly number[]) =>
    numbers
      .map((number) => indexOfNumber(row, number))
      .filter((index) => index !== null)
      .map((index) => numberAt(renumbered, index))
      .sort((a, b) => a - b);
  return {
    ...renumbered,
    accessible: moved(row.accessible),
    restrictedView: moved(row.restrictedView),
  };
}

export function numberSeats(row: EditorRow, scheme: SeatScheme): EditorRow {
  const step = scheme.parity === 'all' ? 1 : 2;
  const isWrongParity =
    (scheme.parity === 'odd' && scheme.start % 2 === 0) ||
    (scheme.parity === 'even' && scheme.start % 2 === 1);
  const start = isWrongParity ? scheme.start + 1 : scheme.start;
  return scheme.from === 'left'
    ? renumber(row, start, step)
    : renumber(row, start + step * (row.seats - 1), -step);
}

/** Which scheme a row follows, for the form. */
export function schemeOf(row: EditorRow): SeatScheme {
  const from = row.numberStep > 0 ? 'left' : 'right';
  const start = from === 'left' ? row.firstNumber : numberAt(row, row.seats - 1);
  const parity = Math.abs(row.numberStep) === 1 ? 'all' : start % 2 === 1 ? 'odd' : 'even';
  return { from, parity, start };
}

export type LabelKind = 'numbers' | 'letters' | 'hangul';

export interface LabelScheme {
  readonly kind: LabelKind;
  /** The label of the first row of the scheme: 1 is `1`, `A` or `가`. */
  readonly start: number;
  /** Whether the row at the stage or the one at the back is first. */
  readonly from: 'front' | 'back';
}

const HANGUL = [...'가나다라마바사아자차카타파하'];
const LETTERS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];

/** The label of a place in the order, from 1: 1, 2, …; A, …, Z, AA, AB, …; 가, …, 하, 가가, …. */
export function labelAt(kind: LabelKind, place: number): string {
  if (kind === 'numbers') return String(place);
  const letters = kind === 'letters' ? LETTERS : HANGUL;
  let label = '';
  for (let rest = Math.max(1, place); rest > 0; rest = Math.floor((rest - 1) / letters.length))
    label = letters[(rest - 1) % letters.length]! + label;
  return label;
}

export function labelRows(rows: readonly EditorRow[], scheme: LabelScheme): EditorRow[] {
  return rows.map((row, index) => {
    const place = scheme.from === 'front' ? index : rows.length - 1 - index;
    return { ...row, label: labelAt(scheme.kind, scheme.start + place) };
  });
}

/** The label after a label: `7` → `8`, `C` → `D`, `라` → `마`, `X9` → `X10`. */
export function labelAfter(label: string): string {
  const number = /^(.*?)(\d+)$/.exec(label);
  if (number) return `${number[1]}${Number(number[2]) + 1}`;
  const kind: LabelKind | null = /^[A-Z]+$/.test(label)
    ? 'letters'
    : [...label].every((one) => HANGUL.includes(one)) && label !== ''
      ? 'hangul'
      : null;
  if (!kind) return `${label} 2`;
  const letters = kind === 'letters' ? LETTERS : HANGUL;
  const place = [...label].reduce((sum, one) => sum * letters.length + letters.indexOf(one) + 1, 0);
  return labelAt(kind, place + 1);
}

/** `1, 3, 5-8` as numbers; null if it is not such a list. */
export function parseNumbers(text: string): number[] | null {
  const numbers: number[] = [];
  for (const part of text.split(',').map((one) => one.trim())) {
    if (part === '') continue;
    const range = /^(\d{1,4})(?:\s*-\s*(\d{1,4}))?$/.exec(part);
    if (!range) return null;
    const [from, to] = [Number(range[1]), Number(range[2] ?? range[1])];
    for (let number = Math.min(from, to); number <= Math.max(from, to); number++)
      numbers.push(number);
  }
  return [...new Set(numbers)].sort((a, b) => a - b);
}

/** `[1, 3, 5, 6, 7, 8]` as `1, 3, 5-8`. */
export function writeNumbers(numbers: readonly number[]): string {
  const sorted = [...numbers].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let end = i;
    while (end + 1 < sorted.length && sorted[end + 1] === sorted[end]! + 1) end++;
    parts.push(end - i > 1 ? `${sorted[i]}-${sorted[end]}` : sorted.slice(i, end + 1).join(', '));
    i = end + 1;
  }
  return parts.join(', ');
}
