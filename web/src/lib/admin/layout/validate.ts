/**
 * Checks a layout as the catalogue does, with the same limits and in the same order. The catalogue
 * names the first mistake; the editor lists all of them with their places.
 * `crates/urr-layout/examples.json` keeps both alike.
 */
import {
  type EditorLayout,
  type EditorRow,
  type EditorSection,
  gradesOf,
  seatCount,
} from './model';
import { indexOfNumber, numberAt, toWire } from './model';

export const SECTIONS_MAX = 500;
export const ROWS_MAX = 5_000;
export const SEATS_PER_ROW_MAX = 500;
export const SEATS_MAX = 100_000;
export const NAME_CHARS_MAX = 50;
export const NUMBER_MAX = 9_999;
export const COORDINATE_MAX = 1_000_000;
export const GRADES_MAX = 50;
export const LAYOUT_BYTES_MAX = 200_000;
/** Pictures that were uploaded here. */
const OWN_IMAGE = /^\/api\/image\/[0-9a-f]{64}$/;
const PITCH_MAX = 65_535;
const MISTAKES_MAX = 100;

export type MistakeCode =
  | 'noSection'
  | 'tooManySections'
  | 'tooManyRows'
  | 'tooManySeats'
  | 'name'
  | 'sameSection'
  | 'noRow'
  | 'sameRow'
  | 'rowSize'
  | 'seatNumber'
  | 'numberStep'
  | 'noSuchSeat'
  | 'drawing'
  | 'picture'
  | 'tooManyGrades'
  | 'tooLong';

export interface Mistake {
  readonly code: MistakeCode;
  /** Which section, as its key, and which of its rows, from 0. */
  readonly sectionKey?: number;
  readonly row?: number;
  /** The names as they are written in the layout. */
  readonly values: { readonly section?: string; readonly row?: string; readonly number?: number };
}

/** All mistakes, up to a hundred; the first one is what the catalogue would say. */
export function findMistakes(layout: EditorLayout): Mistake[] {
  const mistakes: Mistake[] = [];
  const { sections } = layout;
  const add = (code: MistakeCode) => mistakes.push({ code, values: {} });
  if (sections.length === 0) add('noSection');
  if (sections.length > SECTIONS_MAX) add('tooManySections');
  if (sections.reduce((sum, section) => sum + section.rows.length, 0) > ROWS_MAX)
    add('tooManyRows');
  const names = new Set<string>();
  for (const section of sections) {
    checkSection(section, names, mistakes);
    if (mistakes.length >= MISTAKES_MAX) return mistakes;
  }
  if (seatCount(layout) > SEATS_MAX) add('tooManySeats');
  if (gradesOf(layout).length > GRADES_MAX) add('tooManyGrades');
  const bytes = new TextEncoder().encode(JSON.stringify(toWire(layout))).length;
  if (bytes > LAYOUT_BYTES_MAX) add('tooLong');
  return mistakes;
}

function checkSection(section: EditorSection, names: Set<string>, mistakes: Mistake[]): void {
  const add = (code: MistakeCode, wrong = section.name) =>
    mistakes.push({ code, sectionKey: section.key, values: { section: wrong } });
  if (names.has(section.name)) add('sameSection');
  names.add(section.name);
  if (!isFitName(section.name)) add('name', shortened(section.name));
  if (!isFitName(section.grade)) add('name', shortened(section.grade));
  if (section.rows.length === 0) add('noRow');
  if (!isWellDrawn(section)) add('drawing');
  if (section.viewImageUrl && !OWN_IMAGE.test(section.viewImageUrl)) add('picture');
  const labels = new Set<string>();
  section.rows.forEach((row, index) => {
    const wrong = checkRow(row, labels);
    labels.add(row.label);
    if (!wrong || mistakes.length >= MISTAKES_MAX) return;
    const values = { section: section.name, row: row.label, ...wrong.values };
    mistakes.push({ code: wrong.code, sectionKey: section.key, row: index, values });
  });
}

function isWellDrawn(section: EditorSection): boolean {
  const isNear = (value: number) => Number.isInteger(value) && Math.abs(value) <= COORDINATE_MAX;
  const isPitch = (value: number) => Number.isInteger(value) && value > 0 && value <= PITCH_MAX;
  return (
    isNear(section.x) &&
    isNear(section.y) &&
    isNear(section.curveRadius) &&
    section.curveRadius >= 0 &&
    section.rows.every((row) => isNear(row.offset)) &&
    isPitch(section.seatPitch) &&
    isPitch(section.rowPitch) &&
    Number.isInteger(section.angleDegrees) &&
    Math.abs(section.angleDegrees) <= 180
  );
}

function checkRow(
  row: EditorRow,
  labels: ReadonlySet<string>,
): { code: MistakeCode; values?: Mistake['values'] } | null {
  if (labels.has(row.label)) return { code: 'sameRow' };
  if (!isFitName(row.label)) return { code: 'name', values: { section: shortened(row.label) } };
  if (!Number.isInteger(row.seats) || row.seats < 1 || row.seats > SEATS_PER_ROW_MAX)
    return { code: 'rowSize' };
  if (![1, 2].includes(Math.abs(row.numberStep))) return { code: 'numberStep' };
  const isNumber = (number: number) =>
    Number.isInteger(number) && number >= 1 && number <= NUMBER_MAX;
  if (!isNumber(row.firstNumber) || !isNumber(numberAt(row, row.seats - 1)))
    return { code: 'seatNumber' };
  const missing = [...row.accessible, ...row.restrictedView].find(
    (number) => indexOfNumber(row, number) === null,
  );
  return missing === undefined ? null : { code: 'noSuchSeat', values: { number: missing } };
}

/** Characters that end a line or turn the direction of the text, as the kernel lists them. */
const UNFIT = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
const SPACE_AROUND = /^\p{White_Space}|\p{White_Space}$/u;

export function isFitName(name: string): boolean {
  return (
    name !== '' &&
    !SPACE_AROUND.test(name) &&
    [...name].length <= NAME_CHARS_MAX &&
    !UNFIT.test(name)
  );
}

function shortened(name: string): string {
  return [...name].slice(0, 60).join('');
}

/** A name between quotation marks, as the catalogue's sentences show it. */
export function quoted(name: string): string {
  const escapes: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\0': '\\0' };
  const text = name
    .replace(/[\\"]/g, '\\$&')
    .replace(
      /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
      (one) => escapes[one] ?? `\\u{${one.codePointAt(0)!.toString(16)}}`,
    );
  return `"${text}"`;
}
