/**
 * Layouts as CSV files, a line per seat. What a person must write is `section`, `row`, `number` and
 * `grade`; `x` and `y` say where a seat is. Our own files also have the shape of the section, so
 * that reading one gives exactly the layout that was written.
 */
import { placer } from '$lib/seatmap/hall';
import { fitShape } from './fit';
import type { EditorLayout, EditorRow, EditorSection } from './model';
import { makeRow, makeSection, numberAt } from './model';

const COLUMNS = [
  'section',
  'row',
  'number',
  'x',
  'y',
  'grade',
  'accessible',
  'restricted',
  'sectionX',
  'sectionY',
  'angleDegrees',
  'curveRadius',
  'seatPitch',
  'rowPitch',
  'rowOffset',
] as const;
type Column = (typeof COLUMNS)[number];

const SHAPE = [
  'sectionX',
  'sectionY',
  'angleDegrees',
  'curveRadius',
  'seatPitch',
  'rowPitch',
] as const;

const ALIASES: Record<string, Column> = {
  구역: 'section',
  열: 'row',
  번호: 'number',
  번: 'number',
  등급: 'grade',
  휠체어: 'accessible',
  시야제한: 'restricted',
  restrictedview: 'restricted',
};

export type CsvCode =
  | 'empty'
  | 'quote'
  | 'missingColumn'
  | 'unknownColumn'
  | 'emptyCell'
  | 'notANumber'
  | 'notYesNo'
  | 'otherGrade'
  | 'otherShape'
  | 'seatTwice'
  | 'numbersJump'
  | 'notInRow'
  | 'notAtShape'
  | 'coordinatesMissing';

export interface CsvProblem {
  readonly line: number;
  readonly code: CsvCode;
  /** The column, the value, or the name that the sentence mentions. */
  readonly value: string;
}

export type CsvResult =
  { readonly layout: EditorLayout } | { readonly problems: readonly CsvProblem[] };

const PROBLEMS_MAX = 50;
/** A seat may be so far from where its shape puts it. */
const ROUNDING_CM = 2;
const BOM = '\ufeff';

export function writeCsv(layout: EditorLayout): string {
  const lines = [COLUMNS.join(',')];
  for (const section of layout.sections) {
    const place = placer(section);
    section.rows.forEach((row, depth) => {
      const middle = (row.seats - 1) / 2 - row.offset / section.seatPitch;
      for (let seat = 0; seat < row.seats; seat++) {
        const { x, y } = place(seat - middle, depth);
        const number = numberAt(row, seat);
        lines.push(
          [
            textCell(section.name),
            textCell(row.label),
            number,
            Math.round(x),
            Math.round(y),
            textCell(section.grade),
            row.accessible.includes(number) ? 1 : 0,
            row.restrictedView.includes(number) ? 1 : 0,
            section.x,
            section.y,
            section.angleDegrees,
            section.curveRadius,
            section.seatPitch,
            section.rowPitch,
            row.offset,
          ].join(','),
        );
      }
    });
  }
  // Spreadsheets take a file without the mark for one in an old Korean encoding.
  return `${BOM}${lines.join('\r\n')}\r\n`;
}

/** Quoted where needed, and never a formula for a spreadsheet. */
function textCell(text: string): string {
  const safe = /^[=+\-@\t\r']/.test(text) ? `'${text}` : text;
  return /[",;\t\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function readText(cell: string): string {
  return /^'[=+\-@\t\r']/.test(cell) ? cell.slice(1) : cell;
}

interface Line {
  readonly line: number;
  readonly cells: readonly string[];
}

/** Cells by line; a cell in quotation marks may contain separators and line ends. */
export function parseCells(text: string): Line[] | CsvProblem {
  const lines: Line[] = [];
  const separator = separatorOf(text);
  let [line, startLine, cell, isQuoted, wasQuoted] = [1, 1, '', false, false];
  let cells: string[] = [];
  const endCell = () => {
    cells.push(wasQuoted ? cell : cell.trim());
    [cell, wasQuoted] = ['', false];
  };
  const endLine = () => {
    endCell();
    if (cells.some((one) => one !== '')) lines.push({ line: startLine, cells });
    cells = [];
  };
  for (let i = text.startsWith(BOM) ? 1 : 0; i < text.length; i++) {
    const char = text[i]!;
    if (isQuoted) {
      if (char === '"' && text[i + 1] === '"') cell += text[++i];
      else if (char === '"') isQuoted = false;
      else cell += char;
    } else if (char === '"' && cell.trim() === '') [cell, isQuoted, wasQuoted] = ['', true, true];
    else if (char === separator) endCell();
    else if (char === '\n') {
      endLine();
      startLine = line + 1;
    } else if (char !== '\r') cell += char;
    if (char === '\n') line += 1;
  }
  if (isQuoted) return { line: startLine, code: 'quote', value: '' };
  endLine();
  return lines;
}

function separatorOf(text: string): string {
  const header = text.slice(0, text.search(/[\r\n]|$/));
  const count = (separator: string) => header.split(separator).length;
  return [',', ';', '\t'].reduce((best, one) => (count(one) > count(best) ? one : best), ',');
}

interface SeatLine {
  readonly line: number;
  readonly number: number;
  readonly x: number | null;
  readonly y: number | null;
  readonly isAccessible: boolean;
  readonly isRestricted: boolean;
}

interface RowLines {
  readonly label: string;
  readonly offset: number;
  readonly seats: SeatLine[];
}

interface SectionLines {
  readonly name: string;
  readonly grade: string;
  readonly line: number;
  readonly shape: readonly number[] | null;
  readonly rows: Map<string, RowLines>;
}

export function readCsv(text: string): CsvResult {
  const parsed = parseCells(text);
  if (!Array.isArray(parsed)) return { problems: [parsed] };
  const [header, ...lines] = parsed;
  if (!header || lines.length === 0)
    return { problems: [{ line: header?.line ?? 1, code: 'empty', value: '' }] };
  const reader = new Reader(header);
  for (const line of lines) {
    if (reader.problems.length >= PROBLEMS_MAX) break;
    reader.read(line);
  }
  const sections = reader.problems.length === 0 ? reader.build() : [];
  return reader.problems.length > 0 ? { problems: reader.problems } : { layout: { sections } };
}

class Reader {
  readonly problems: CsvProblem[] = [];
  readonly #columns = new Map<Column, number>();
  readonly #sections = new Map<string, SectionLines>();

  constructor(header: Line) {
    header.cells.forEach((cell, index) => {
      const name = cell.toLowerCase().replace(/[\s_-]/g, '');
      const column = ALIASES[name] ?? COLUMNS.find((one) => one.toLowerCase() === name);
      if (column) this.#columns.set(column, index);
      else if (cell !== '') this.#add(header.line, 'unknownColumn', cell);
    });
    for (const needed of ['section', 'row', 'number', 'grade'] as const)
      if (!this.#columns.has(needed)) this.#add(header.line, 'missingColumn', needed);
  }

  #add(line: number, code: CsvCode, value: string): null {
    if (this.problems.length < PROBLEMS_MAX) this.problems.push({ line, code, value });
    return null;
  }

  #cell({ cells }: Line, column: Column): string {
    const index = this.#columns.get(column);
    return index === undefined ? '' : (cells[index] ?? '');
  }

  #text(line: Line, column: Column): string | null {
    const text = readText(this.#cell(line, column));
    return text === '' ? this.#add(line.line, 'emptyCell', column) : text;
  }

  /** Null if the cell is empty; a text that is no number is a problem. */
  #number(line: Line, column: Column): number | null {
    const text = this.#cell(line, column);
    if (text === '') return null;
    const number = Number(text);
    if (Number.isFinite(number)) return number;
    return this.#add(line.line, 'notANumber', `${column}: ${text}`);
  }

  #yes(line: Line, column: Column): boolean {
    const text = this.#cell(line, column).toLowerCase();
    if (['', '0', 'no', 'false', 'n', '아니요', '아니오'].includes(text)) return false;
    if (!['1', 'yes', 'true', 'y', 'x', '예', 'o'].includes(text))
      this.#add(line.line, 'notYesNo', `${column}: ${text}`);
    return true;
  }

  read(line: Line): void {
    const [name, label] = [this.#text(line, 'section'), this.#text(line, 'row')];
    const [grade, number] = [this.#text(line, 'grade'), this.#number(line, 'number')];
    if (name === null || label === null || grade === null) return;
    if (number === null || !Number.isInteger(number)) {
      if (number !== null || this.#cell(line, 'number') === '')
        this.#add(line.line, 'notANumber', `number: ${this.#cell(line, 'number')}`);
      return;
    }
    const section = this.#section(line, name, grade);
    const row = section.rows.get(label) ?? {
      label,
      offset: this.#number(line, 'rowOffset') ?? 0,
      seats: [],
    };
    section.rows.set(label, row);
    if (row.seats.some((seat) => seat.number === number))
      this.#add(line.line, 'seatTwice', `${name} ${label} ${number}`);
    row.seats.push({
      line: line.line,
      number,
      x: this.#number(line, 'x'),
      y: this.#number(line, 'y'),
      isAccessible: this.#yes(line, 'accessible'),
      isRestricted: this.#yes(line, 'restricted'),
    });
  }

  #section(line: Line, name: string, grade: string): SectionLines {
    const numbers = SHAPE.map((column) => this.#number(line, column));
    const shape = numbers.every((one) => one !== null) ? numbers : null;
    const known = this.#sections.get(name);
    if (!known) {
      const section = { name, grade, line: line.line, shape, rows: new Map() };
      this.#sections.set(name, section);
      return section;
    }
    if (known.grade !== grade) this.#add(line.line, 'otherGrade', `${name}: ${known.grade}`);
    if (String(known.shape) !== String(shape)) this.#add(line.line, 'otherShape', name);
    return known;
  }

  build(): EditorSection[] {
    const sections: EditorSection[] = [];
    let nextY = 600;
    for (const lines of this.#sections.values()) {
      const section = this.#build(lines, nextY);
      if (!section) continue;
      nextY += (section.rows.length + 1) * section.rowPitch;
      sections.push(section);
    }
    return sections;
  }

  #build(lines: SectionLines, defaultY: number): EditorSection | null {
    const rows = [...lines.rows.values()];
    const seats = rows.flatMap((row) => row.seats);
    const placed = seats.filter((seat) => seat.x !== null && seat.y !== null);
    if (lines.shape) return this.#withShape(lines, rows, placed);
    if (placed.length === 0) return this.#assembled(lines, rows, { x: 0, y: defaultY });
    const unplaced = seats.find((seat) => seat.x === null || seat.y === null);
    if (unplaced) return this.#add(unplaced.line, 'coordinatesMissing', lines.name);
    const fitted = fitShape(
      rows.map((row) => row.seats.map(({ x, y }) => ({ x: x ?? 0, y: y ?? 0 }))),
    );
    const ordered = fitted.isReversed
      ? rows.map((row) => ({ ...row, seats: [...row.seats].reverse() }))
      : rows;
    const withOffsets = ordered.map((row, i) => ({ ...row, offset: fitted.offsets[i] ?? 0 }));
    const section = this.#assembled(lines, withOffsets, fitted.shape);
    if (section)
      this.#compare(section, withOffsets, section.seatPitch * 0.35, 'notInRow', lines.name);
    return section;
  }

  #withShape(
    lines: SectionLines,
    rows: readonly RowLines[],
    placed: readonly SeatLine[],
  ): EditorSection | null {
    const [x, y, angleDegrees, curveRadius, seatPitch, rowPitch] = lines.shape as number[];
    const shape = { x, y, angleDegrees, curveRadius, seatPitch, rowPitch };
    const section = this.#assembled(lines, rows, shape as Partial<EditorSection>);
    if (section && placed.length > 0)
      this.#compare(section, rows, ROUNDING_CM, 'notAtShape', lines.name);
    return section;
  }

  #assembled(
    lines: SectionLines,
    rows: readonly RowLines[],
    shape: Partial<EditorSection>,
  ): EditorSection | null {
    const made = rows.map((row) => this.#row(row, lines.name));
    return made.every((row) => row !== null)
      ? makeSection(lines.name, lines.grade, made, shape)
      : null;
  }

  /** The numbers of a row go on evenly: by 1 or 2, up or down. */
  #row({ label, seats, offset }: RowLines, section: string): EditorRow | null {
    const step = seats.length > 1 ? seats[1]!.number - seats[0]!.number : 1;
    const jump = seats.find(
      (seat, index) => index > 0 && seat.number - seats[index - 1]!.number !== step,
    );
    if (jump) return this.#add(jump.line, 'numbersJump', `${section} ${label}`);
    if (![1, 2].includes(Math.abs(step)))
      return this.#add(seats[1]!.line, 'numbersJump', `${section} ${label}`);
    const numbers = (isMarked: (seat: SeatLine) => boolean) =>
      seats
        .filter(isMarked)
        .map((seat) => seat.number)
        .sort((a, b) => a - b);
    return makeRow(label, seats.length, {
      firstNumber: seats[0]!.number,
      numberStep: step,
      offset,
      accessible: numbers((seat) => seat.isAccessible),
      restrictedView: numbers((seat) => seat.isRestricted),
    });
  }

  /** Names the first seat of each row that is not where the shape puts it. */
  #compare(
    section: EditorSection,
    rows: readonly RowLines[],
    allowed: number,
    code: CsvCode,
    name: string,
  ): void {
    const place = placer(section);
    rows.forEach((row, depth) => {
      const middle = (row.seats.length - 1) / 2 - row.offset / section.seatPitch;
      const wrong = row.seats.find((seat, index) => {
        if (seat.x === null || seat.y === null) return false;
        const { x, y } = place(index - middle, depth);
        return Math.hypot(x - seat.x, y - seat.y) > allowed;
      });
      if (wrong) this.#add(wrong.line, code, `${name} ${row.label} ${wrong.number}`);
    });
  }
}
