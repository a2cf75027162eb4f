import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setPrerenderLocale } from '$lib/text/locale';
import { parseCells, readCsv, writeCsv } from './csv';
import { readLayoutFile } from './files';
import { readJson, writeJson } from './json';
import type { EditorLayout } from './model';
import { makeRow, makeSection, toWire } from './model';

const LAYOUT: EditorLayout = {
  sections: [
    makeSection(
      '1층 "가", 나',
      'VIP',
      [
        makeRow('1', 12, { accessible: [1, 2], restrictedView: [12] }),
        makeRow('2', 13, { firstNumber: 25, numberStep: -2, offset: -35 }),
      ],
      { x: -120, y: 640, angleDegrees: 23, curveRadius: 900, seatPitch: 55, rowPitch: 95 },
    ),
    makeSection('=SUM(A1)', '-R', [makeRow('A', 5), makeRow('B', 6, { offset: 25 })], {
      x: 900,
      y: 1200,
      angleDegrees: -90,
    }),
    makeSection("'quoted", 'R', [makeRow('1', 1)], { y: 3000 }),
  ],
};

beforeAll(() => setPrerenderLocale('en'));
afterAll(() => setPrerenderLocale('ko'));

function problems(text: string): readonly string[] {
  const result = readLayoutFile(text);
  return 'problems' in result ? result.problems : [];
}

function read(text: string): EditorLayout {
  const result = readLayoutFile(text);
  if ('problems' in result) throw new Error(result.problems.join('\n'));
  return result.layout;
}

describe('a round trip', () => {
  it('through JSON gives the same layout', () => {
    expect(toWire(read(writeJson(LAYOUT)))).toEqual(toWire(LAYOUT));
    expect(writeJson(read(writeJson(LAYOUT)))).toBe(writeJson(LAYOUT));
  });

  it('through CSV gives the same layout', () => {
    expect(toWire(read(writeCsv(LAYOUT)))).toEqual(toWire(LAYOUT));
    expect(writeCsv(read(writeCsv(LAYOUT)))).toBe(writeCsv(LAYOUT));
  });

  it('writes no formula', () => {
    const cells = parseCells(writeCsv(LAYOUT));
    if (!Array.isArray(cells)) throw new Error('unreadable');
    const texts = cells
      .slice(1)
      .flatMap((line) => [line.cells[0]!, line.cells[1]!, line.cells[5]!]);
    expect(texts.filter((text) => /^[=+\-@]/.test(text))).toEqual([]);
  });
});

/** The file without the columns of the shape: what a person would write. */
function bare(layout: EditorLayout): string {
  const lines = writeCsv(layout).trim().split('\r\n');
  const cells = lines.map((line) => line.match(/("(?:[^"]|"")*"|[^,]*)(,|$)/g)!.slice(0, 8));
  return cells.map((line) => line.map((cell) => cell.replace(/,$/, '')).join(',')).join('\n');
}

describe('a CSV file', () => {
  it('may tell only names; then sections stand behind each other', () => {
    const text = 'section,row,number,grade\nA,1,1,R\nA,1,2,R\nA,2,1,R\nB,1,4,S\nB,1,3,S\n';
    const [a, b] = read(text).sections;
    expect(a).toMatchObject({ name: 'A', grade: 'R', y: 600, rows: [{ seats: 2 }, { seats: 1 }] });
    expect(b).toMatchObject({ rows: [{ firstNumber: 4, numberStep: -1 }] });
    expect(b!.y).toBeGreaterThan(a!.y + 90);
  });

  it('may have Korean columns, semicolons, quotes and marks', () => {
    const text = '구역;열;번호;등급;휠체어;시야제한\n"가;나";1;1;R;예;0\n"가;나";1;2;R;;1\n';
    expect(read(text).sections).toMatchObject([
      { name: '가;나', rows: [{ accessible: [1], restrictedView: [2] }] },
    ]);
  });

  it.each([
    ['straight', { angleDegrees: 0 }],
    ['turned', { angleDegrees: 30 }],
    ['behind the stage', { y: -900, angleDegrees: 180 }],
    ['at the side', { x: 1500, y: 0, angleDegrees: -90 }],
    ['curved', { curveRadius: 1200 }],
    ['curved and turned', { x: -800, curveRadius: 1500, angleDegrees: 40 }],
  ])('finds the shape of a %s section from x and y', (_, shape) => {
    const rows = [makeRow('1', 11), makeRow('2', 12, { offset: 25 }), makeRow('3', 13)];
    const section = makeSection('A', 'R', rows, { y: 800, ...shape });
    const [found] = read(bare({ sections: [section] })).sections;
    for (const field of ['x', 'y', 'angleDegrees', 'seatPitch', 'rowPitch'] as const)
      expect(Math.abs(found![field] - section[field]), field).toBeLessThanOrEqual(3);
    expect(Math.abs(found!.curveRadius - section.curveRadius)).toBeLessThan(60);
    expect(found!.rows.map((row) => row.seats)).toEqual([11, 12, 13]);
    expect(Math.abs(found!.rows[1]!.offset - 25)).toBeLessThan(6);
  });

  it('may list seats from right to left', () => {
    const text = 'section,row,number,grade,x,y\nA,1,1,R,50,500\nA,1,2,R,0,500\nA,1,3,R,-50,500\n';
    expect(read(text).sections[0]!.rows[0]).toMatchObject({ firstNumber: 3, numberStep: -1 });
  });

  it.each([
    ['', 'Line 1: There is nothing to read.'],
    ['section,row,number\nA,1,1', 'Line 1: The column grade is missing.'],
    ['section,row,number,grade,price\nA,1,1,R,5', 'Line 1: The column price is unknown.'],
    ['section,row,number,grade\nA,1,1,R\n\nA,1,x,R', 'Line 4: This is not a number. number: x'],
    ['section,row,number,grade\n,1,1,R', 'Line 2: The cell section is empty.'],
    ['section,row,number,grade\nA,1,1,R\nA,1,1,R', 'Line 3: Seat A 1 1 is there twice.'],
    ['section,row,number,grade\nA,1,1,R\nA,1,2,S', 'Line 3: A section has one grade. A: R'],
    [
      'section,row,number,grade\nA,1,1,R\nA,1,2,R\nA,1,5,R',
      'Line 4: A 1: numbers must go on evenly by 1 or 2.',
    ],
    ['section,row,number,grade\n"A,1,1,R', 'Line 2: A quotation mark is not closed.'],
    [
      'section,row,number,grade,x,y\nA,1,1,R,0,500\nA,1,2,R,,',
      'Line 3: A seat of section A has no x or y.',
    ],
    [
      'section,row,number,grade,x,y\nA,1,1,R,0,500\nA,1,2,R,50,500\nA,1,3,R,100,500\nA,1,4,R,260,500',
      'Line 3: Seat A 1 2 does not stand in a straight or curved row.',
    ],
    [
      'section,row,number,grade,accessible\nA,1,1,R,maybe',
      'Line 2: This must be 1 or 0. accessible: maybe',
    ],
  ])('is refused with the line: %j', (text, sentence) => {
    expect(problems(text)).toContain(sentence);
  });

  it('is refused if x and y contradict the shape', () => {
    const changed = writeCsv(LAYOUT).replace(/,A,3,(-?\d+),/, ',A,3,4000,');
    expect(problems(changed).join()).toMatch(/^Line 29: x and y of seat =SUM\(A1\) A 3 differ/);
  });

  it('with ten thousand mistakes names the first ones', () => {
    const lines = Array.from({ length: 10_000 }, () => 'A,1,x,R');
    expect(problems(['section,row,number,grade', ...lines].join('\n'))).toHaveLength(21);
  });
});

describe('a JSON file', () => {
  it.each([
    ['{\n"sections": [,]}', /^Line 2: This is not JSON/],
    ['{"sections": [\n{"name": "A"}\n{}]}', /^Line 3: This is not JSON/],
    ['{"sections": 5}', /^sections has the wrong type/],
    ['{"halls": []}', /^halls is unknown/],
    ['{"sections": [{"name": "A", "rows": []}]}', /^sections\[0\]\.grade is missing/],
    [
      '{"sections": [{"name": "A", "grade": "R", "rows": [{"label": 1, "seats": 2.5}]}]}',
      /^sections\[0\]\.rows\[0\]\.label has the wrong type/,
    ],
    ['{"sections": [{"name": "A", "grade": "R", "rows": []}]}', /^Section "A" has no row/],
    ['{"sections": []}', /^The layout has no section/],
  ])('is refused with the place: %s', (text, sentence) => {
    expect(problems(text)[0]).toMatch(sentence);
  });

  it('may be what the API gives and takes', () => {
    const layout = toWire(LAYOUT);
    for (const body of [{ layout }, { layoutConfig: layout }, { hall: { layoutConfig: layout } }])
      expect('layout' in readJson(JSON.stringify(body))).toBe(true);
  });

  it('is no CSV', () => {
    expect('problems' in readCsv('{"sections": []}')).toBe(true);
  });
});
