/**
 * Cuts a section where its seats differ: a section has one grade, and its rows have no gaps. Pieces
 * stand exactly where their seats stood.
 */
import { placer } from '$lib/seatmap/hall';
import type { EditorLayout, EditorRow, EditorSection } from './model';
import { freeName, nextKey, numberAt } from './model';

interface Run {
  readonly from: number;
  /** The index after the last seat. */
  readonly to: number;
  readonly grade: string;
}

interface Piece {
  readonly grade: string;
  readonly depth: number;
  readonly rows: { readonly row: EditorRow; readonly run: Run }[];
}

/**
 * Gives each seat a grade; null removes the seat. The first piece keeps the section's name and key,
 * the others are called `A 2`, `A 3`, ….
 */
export function regrade(
  layout: EditorLayout,
  key: number,
  gradeOf: (row: number, seat: number) => string | null,
): EditorLayout {
  const at = layout.sections.findIndex((section) => section.key === key);
  const section = layout.sections[at];
  if (!section) return layout;
  const pieces = piecesOf(section, gradeOf);
  const [whole] = pieces;
  if (pieces.length === 1 && whole && isWhole(section, whole)) {
    if (whole.grade === section.grade) return layout;
    return replaced(layout, at, [{ ...section, grade: whole.grade }]);
  }
  const sections: EditorSection[] = [];
  let growing: EditorLayout = layout;
  for (const piece of pieces) {
    const isFirst = sections.length === 0;
    const name = isFirst ? section.name : freeName(growing, section.name);
    const made = cutOut(section, piece, name, isFirst ? section.key : nextKey());
    sections.push(made);
    growing = { sections: [...growing.sections, made] };
  }
  return replaced(layout, at, sections);
}

function replaced(
  layout: EditorLayout,
  at: number,
  sections: readonly EditorSection[],
): EditorLayout {
  return {
    sections: [...layout.sections.slice(0, at), ...sections, ...layout.sections.slice(at + 1)],
  };
}

function isWhole(section: EditorSection, piece: Piece): boolean {
  return (
    piece.rows.length === section.rows.length &&
    piece.rows.every(({ row, run }) => run.from === 0 && run.to === row.seats)
  );
}

function runsOf(row: EditorRow, gradeAt: (seat: number) => string | null): Run[] {
  const runs: Run[] = [];
  for (let seat = 0; seat < row.seats; seat++) {
    const grade = gradeAt(seat);
    const last = runs.at(-1);
    if (grade === null) continue;
    if (last && last.to === seat && last.grade === grade)
      runs[runs.length - 1] = { ...last, to: seat + 1 };
    else runs.push({ from: seat, to: seat + 1, grade });
  }
  return runs;
}

/** Rows behind each other with the same grades from left to right stay together. */
function piecesOf(
  section: EditorSection,
  gradeOf: (row: number, seat: number) => string | null,
): Piece[] {
  const pieces: Piece[] = [];
  let open: Piece[] = [];
  section.rows.forEach((row, depth) => {
    const runs = runsOf(row, (seat) => gradeOf(depth, seat));
    const goesOn =
      runs.length === open.length && runs.every((run, i) => run.grade === open[i]!.grade);
    if (!goesOn) {
      open = runs.map((run) => ({ grade: run.grade, depth, rows: [] }));
      pieces.push(...open);
    }
    runs.forEach((run, i) => open[i]!.rows.push({ row, run }));
  });
  return pieces;
}

function cutOut(section: EditorSection, piece: Piece, name: string, key: number): EditorSection {
  const { seatPitch, rowPitch, curveRadius } = section;
  const rows = piece.rows.map(({ row, run }) => {
    const middle = (run.from + run.to - 1) / 2 - (row.seats - 1) / 2;
    return part(row, run, Math.round(row.offset + middle * seatPitch));
  });
  // A straight piece is placed by the middle of its own first row.
  const shift = curveRadius === 0 ? (rows[0]?.offset ?? 0) : 0;
  const origin = placer(section)(shift / seatPitch, piece.depth);
  return {
    ...section,
    key,
    name,
    grade: piece.grade,
    x: Math.round(origin.x),
    y: Math.round(origin.y),
    curveRadius: curveRadius === 0 ? 0 : curveRadius + piece.depth * rowPitch,
    rows: rows.map((row) => ({ ...row, offset: row.offset - shift })),
  };
}

function part(row: EditorRow, run: Run, offset: number): EditorRow {
  const seats = run.to - run.from;
  const firstNumber = numberAt(row, run.from);
  const numbers = new Set(
    Array.from({ length: seats }, (_, index) => numberAt(row, run.from + index)),
  );
  return {
    ...row,
    seats,
    firstNumber,
    offset,
    accessible: row.accessible.filter((number) => numbers.has(number)),
    restrictedView: row.restrictedView.filter((number) => numbers.has(number)),
  };
}
