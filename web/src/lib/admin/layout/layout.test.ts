import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { type LayoutView, makeHall, seatName } from '$lib/seatmap/hall';
import { setPrerenderLocale } from '$lib/text/locale';
import { draw, seatsBetween, targetAt } from './drawing';
import {
  addCopies,
  centreOnStage,
  deleteSelected,
  mirrorSelected,
  moveSelected,
  paintGrade,
  setFlag,
  shiftRows,
  turnSelected,
  withRowCount,
  withSeats,
} from './edit';
import { mirrored, normalAngle, polygonSection, rectangleSection } from './geometry';
import { History } from './history';
import type { EditorLayout } from './model';
import { freeName, fromWire, makeRow, makeSection, numberAt, toWire } from './model';
import {
  labelAfter,
  labelAt,
  labelRows,
  numberSeats,
  parseNumbers,
  renumber,
  schemeOf,
  writeNumbers,
} from './numbering';
import { everything, only, selectedSeatCount, selectSeats, toggled } from './selection';
import { mistakeSentence } from './sentences';
import { snapAngle, snapMove } from './snap';
import { findMistakes, ROWS_MAX, SEATS_PER_ROW_MAX, SECTIONS_MAX } from './validate';

interface Example {
  readonly name: string;
  readonly layout: LayoutView;
  readonly sentence: string | null;
}

const EXAMPLES = JSON.parse(
  readFileSync(new URL('../../../../../crates/urr-layout/examples.json', import.meta.url), 'utf8'),
) as Example[];

function one(rows = [makeRow('1', 4), makeRow('2', 4)], more = {}): EditorLayout {
  return { sections: [makeSection('A', 'R', rows, { y: 500, ...more })] };
}

interface PlacedSeat {
  readonly text: string;
  readonly x: number;
  readonly y: number;
}

/** All seats: where they stand and what is written on them, without their section's name. */
function seats(layout: EditorLayout): PlacedSeat[] {
  const hall = makeHall(toWire(layout));
  return Array.from({ length: hall.seatCount }, (_, seat) => {
    const { row, number, grade, isAccessible } = seatName(hall, seat);
    const text = `${row}-${number} ${grade}${isAccessible ? ' a' : ''}`;
    return { text, x: hall.x[seat]!, y: hall.y[seat]! };
  }).sort((a, b) => (a.text < b.text ? -1 : 1));
}

/** The same seats, up to rounding. */
function expectSame(found: readonly PlacedSeat[], expected: readonly PlacedSeat[]): void {
  expect(found.map(({ text }) => text)).toEqual(expected.map(({ text }) => text));
  found.forEach(({ x, y }, index) => {
    const other = expected[index]!;
    expect(Math.hypot(x - other.x, y - other.y)).toBeLessThan(1.5);
  });
}

describe('validation', () => {
  afterEach(() => setPrerenderLocale('ko'));

  it.each(EXAMPLES)('says what the catalogue says: $name', ({ layout, sentence }) => {
    setPrerenderLocale('en');
    const [first] = findMistakes(fromWire(layout));
    expect(first ? mistakeSentence(first) : null).toBe(sentence);
  });

  it('bounds the size of a hall', () => {
    const rows = (count: number, size: number) =>
      one(Array.from({ length: count }, (_, i) => makeRow(String(i), size)));
    const codes = (layout: EditorLayout) => findMistakes(layout).map((mistake) => mistake.code);
    expect(codes(rows(200, SEATS_PER_ROW_MAX))).toEqual([]);
    expect(codes(rows(201, SEATS_PER_ROW_MAX))).toEqual(['tooManySeats']);
    expect(codes(rows(ROWS_MAX + 1, 1))).toContain('tooManyRows');
    const many = Array.from({ length: SECTIONS_MAX + 1 }, (_, i) =>
      makeSection(`S${i}`, 'R', [makeRow('1', 1)]),
    );
    expect(codes({ sections: many })).toEqual(['tooManySections']);
    const grades = Array.from({ length: 51 }, (_, i) =>
      makeSection(`S${i}`, `G${i}`, [makeRow('1', 1)]),
    );
    expect(codes({ sections: grades })).toEqual(['tooManyGrades']);
    const wordy = Array.from({ length: 4_000 }, (_, i) => makeRow(String(i).padStart(50, '0'), 1));
    expect(codes(one(wordy))).toEqual(['tooLong']);
  });

  it('tells the place of every mistake', () => {
    const layout = {
      sections: [
        makeSection('A', 'R', [makeRow('1', 3), makeRow('1', 3)]),
        makeSection('A', 'R', [makeRow('1', 3, { accessible: [9] })]),
      ],
    };
    const [a, b] = layout.sections.map((section) => section.key);
    expect(findMistakes(layout)).toMatchObject([
      { code: 'sameRow', sectionKey: a, row: 1 },
      { code: 'sameSection', sectionKey: b },
      { code: 'noSuchSeat', sectionKey: b, row: 0, values: { number: 9 } },
    ]);
  });
});

describe('the wire', () => {
  it('gives back what it took, without usual values of rows', () => {
    for (const { layout, sentence } of EXAMPLES) {
      if (sentence !== null) continue;
      const again = toWire(fromWire(layout));
      expect(toWire(fromWire(again))).toEqual(again);
      expect(again.sections[0]?.rows).toEqual(layout.sections[0]?.rows);
    }
  });
});

describe('numbering', () => {
  const row = makeRow('1', 4, { accessible: [1] });
  const numbers = (one: typeof row) =>
    Array.from({ length: one.seats }, (_, i) => numberAt(one, i));

  it.each([
    ['left', 'all', 1, [1, 2, 3, 4]],
    ['right', 'all', 1, [4, 3, 2, 1]],
    ['left', 'odd', 1, [1, 3, 5, 7]],
    ['right', 'odd', 1, [7, 5, 3, 1]],
    ['left', 'even', 1, [2, 4, 6, 8]],
    ['right', 'even', 10, [16, 14, 12, 10]],
    ['left', 'all', 101, [101, 102, 103, 104]],
  ] as const)('from the %s, %s, from %i', (from, parity, start, expected) => {
    const numbered = numberSeats(row, { from, parity, start });
    expect(numbers(numbered)).toEqual(expected);
    // The wheelchair seat stays where it is.
    expect(numbered.accessible).toEqual([expected[0]]);
    expect(numbers(numberSeats(row, schemeOf(numbered)))).toEqual(expected);
  });

  it('drops marks of seats that do not exist', () => {
    expect(renumber({ ...row, accessible: [9] }, 5, 1).accessible).toEqual([]);
  });

  it('labels rows', () => {
    const rows = [1, 2, 3].map((label) => makeRow(String(label), 1));
    const labels = (scheme: Parameters<typeof labelRows>[1]) =>
      labelRows(rows, scheme).map((one) => one.label);
    expect(labels({ kind: 'letters', start: 25, from: 'front' })).toEqual(['Y', 'Z', 'AA']);
    expect(labels({ kind: 'hangul', start: 1, from: 'back' })).toEqual(['다', '나', '가']);
    expect(labels({ kind: 'numbers', start: 7, from: 'front' })).toEqual(['7', '8', '9']);
    expect([1, 26, 27, 52, 53, 702, 703].map((place) => labelAt('letters', place))).toEqual([
      'A',
      'Z',
      'AA',
      'AZ',
      'BA',
      'ZZ',
      'AAA',
    ]);
    expect(['7', 'C', 'Z', '라', 'X9', 'loge'].map(labelAfter)).toEqual([
      '8',
      'D',
      'AA',
      '마',
      'X10',
      'loge 2',
    ]);
  });

  it('reads and writes lists of numbers', () => {
    expect(parseNumbers('1, 3,5-8, 7')).toEqual([1, 3, 5, 6, 7, 8]);
    expect(parseNumbers('')).toEqual([]);
    for (const wrong of ['a', '1-', '-3', '1.5', '99999']) expect(parseNumbers(wrong)).toBeNull();
    expect(writeNumbers([8, 1, 3, 5, 6, 7])).toBe('1, 3, 5-8');
    expect(writeNumbers([1, 2])).toBe('1, 2');
  });

  it('keeps the first number when a row grows or shrinks', () => {
    const right = numberSeats(row, { from: 'right', parity: 'all', start: 1 });
    expect(numbers(withSeats(right, 2))).toEqual([2, 1]);
    expect(withSeats(right, 2).accessible).toEqual([]);
    expect(numbers(withSeats(row, 6))).toEqual([1, 2, 3, 4, 5, 6]);
  });
});

describe('shapes', () => {
  it('fills a rectangle with seats', () => {
    const section = rectangleSection(
      { x: 500, y: 950 },
      { x: -500, y: 500 },
      { name: 'A', grade: 'R' },
    );
    expect(section).toMatchObject({ x: 0, y: 545 });
    expect(section.rows.map((row) => row.seats)).toEqual([20, 20, 20, 20, 20]);
  });

  it('fills a polygon row by row', () => {
    const corners = [
      { x: 0, y: 0 },
      { x: 400, y: 0 },
      { x: 1000, y: 900 },
      { x: 0, y: 900 },
    ];
    const section = polygonSection(corners, { name: 'A', grade: 'R' })!;
    expect(section.rows).toHaveLength(10);
    expect(section.rows[0]!.seats).toBe(8);
    expect(section.rows.at(-1)!.seats).toBe(19);
    const hall = makeHall(toWire({ sections: [section] }));
    for (let seat = 0; seat < hall.seatCount; seat++) {
      expect(hall.x[seat]).toBeGreaterThan(0);
      expect(hall.x[seat]).toBeLessThan(400 + (600 * hall.y[seat]!) / 900);
    }
    expect(polygonSection(corners.slice(0, 2), { name: 'A', grade: 'R' })).toBeNull();
  });

  it('mirrors seats with their numbers', () => {
    const rows = [makeRow('1', 3, { accessible: [1], offset: 40 })];
    const section = makeSection('A', 'R', rows, { x: 500, y: 500, angleDegrees: 30 });
    const flipped = mirrored(section, 0);
    const [before, after] = [section, flipped].map((one) => makeHall(toWire({ sections: [one] })));
    for (let seat = 0; seat < 3; seat++) {
      expect(after!.x[2 - seat]).toBeCloseTo(-before!.x[seat]!, 0);
      expect(after!.y[2 - seat]).toBeCloseTo(before!.y[seat]!, 0);
      expect(seatName(after!, 2 - seat).number).toBe(seatName(before!, seat).number);
      expect(seatName(after!, 2 - seat).isAccessible).toBe(seatName(before!, seat).isAccessible);
    }
    expect(mirrored(flipped, 0)).toEqual(section);
  });

  it('keeps angles between -180 and 180', () => {
    expect([0, 180, 181, -181, 360, 540].map(normalAngle)).toEqual([0, 180, -179, 179, 0, 180]);
  });
});

describe('changes', () => {
  it('moves, turns, mirrors and copies what is selected', () => {
    const layout = one();
    const all = everything(layout);
    expect(moveSelected(layout, all, 30, -20).sections[0]).toMatchObject({ x: 30, y: 480 });
    expect(moveSelected(layout, new Map(), 30, -20)).toBe(layout);
    const full = [90, 90, 90, 90].reduce((one, turn) => turnSelected(one, all, turn), layout);
    expectSame(seats(full), seats(layout));
    expect(mirrorSelected(mirrorSelected(layout, all), all)).toEqual(layout);
    const { layout: copied, keys } = addCopies(layout, layout.sections, 100, 0);
    expect(copied.sections.map((section) => section.name)).toEqual(['A', 'A 2']);
    expect(copied.sections[1]!.key).toBe(keys[0]);
    expect(freeName(copied, 'A 2')).toBe('A 3');
    expect(centreOnStage(moveSelected(layout, all, 70, 0)).sections[0]!.x).toBe(0);
  });

  it.each([
    ['straight', {}],
    ['turned', { angleDegrees: 37 }],
    ['curved', { curveRadius: 900, angleDegrees: -20 }],
  ])('cuts a %s section where its grades differ, and no seat moves', (_, shape) => {
    const rows = ['1', '2', '3'].map((label) => makeRow(label, 6, { accessible: [3] }));
    const layout = one(rows, shape);
    const { key } = layout.sections[0]!;
    const middle = new Map([[key, new Map([[1, new Set([2, 3])]])]]);
    const painted = paintGrade(layout, middle, 'VIP');
    expect(painted.sections.map((section) => section.name)).toEqual([
      'A',
      'A 2',
      'A 3',
      'A 4',
      'A 5',
    ]);
    expect(painted.sections.map((section) => section.grade)).toEqual(['R', 'R', 'VIP', 'R', 'R']);
    expect(findMistakes(painted)).toEqual([]);
    const all = seats(painted);
    expect(all.filter(({ text }) => text.includes('VIP'))).toHaveLength(2);
    const plain = all.map((seat) => ({ ...seat, text: seat.text.replace('VIP', 'R') }));
    expectSame(
      plain.sort((a, b) => (a.text < b.text ? -1 : 1)),
      seats(layout),
    );
  });

  it('paints a whole section without cutting it', () => {
    const layout = one();
    const painted = paintGrade(layout, everything(layout), 'S');
    expect(painted.sections).toMatchObject([{ name: 'A', grade: 'S' }]);
    expect(paintGrade(layout, everything(layout), 'R')).toBe(layout);
  });

  it('deletes rows and seats; what is left stays where it is', () => {
    const layout = one();
    const { key } = layout.sections[0]!;
    const without = deleteSelected(layout, new Map([[key, new Map([[0, null]])]]));
    const secondRow = seats(layout).filter(({ text }) => text.startsWith('2-'));
    expectSame(seats(without), secondRow);
    const gap = deleteSelected(layout, new Map([[key, new Map([[0, new Set([1])]])]]));
    const others = seats(layout).filter(({ text }) => !text.startsWith('1-2 '));
    expectSame(seats(gap), others);
    expect(deleteSelected(layout, everything(layout)).sections).toEqual([]);
  });

  it('marks seats and takes marks away', () => {
    const layout = one();
    const { key } = layout.sections[0]!;
    const seat = only({ key, row: 1, seat: 2 });
    const marked = setFlag(layout, seat, 'restrictedView', true);
    expect(marked.sections[0]!.rows[1]!.restrictedView).toEqual([3]);
    expect(setFlag(marked, seat, 'restrictedView', true)).toBe(marked);
    expect(setFlag(marked, seat, 'restrictedView', false)).toEqual(layout);
  });

  it('adds rows at the back and moves rows aside', () => {
    const section = withRowCount(one().sections[0]!, 4);
    expect(section.rows.map((row) => row.label)).toEqual(['1', '2', '3', '4']);
    expect(withRowCount(section, 1).rows).toHaveLength(1);
    const layout = { sections: [section] };
    const shifted = shiftRows(layout, only({ key: section.key, row: 2 }), 25);
    expect(shifted.sections[0]!.rows.map((row) => row.offset)).toEqual([0, 0, 25, 0]);
  });
});

describe('the selection', () => {
  it('takes sections, rows or seats, alone or together', () => {
    const layout = one();
    const { key } = layout.sections[0]!;
    let selection = toggled(new Map(), { key, row: 0, seat: 1 });
    selection = toggled(selection, { key, row: 1 });
    expect(selectedSeatCount(layout, selection)).toBe(5);
    selection = toggled(selection, { key, row: 0, seat: 1 });
    expect(selectedSeatCount(layout, selection)).toBe(4);
    selection = toggled(selection, { key });
    expect(selectedSeatCount(layout, selection)).toBe(8);
    expect(toggled(selection, { key }).size).toBe(0);
  });

  it('finds what is under a point or in a box', () => {
    const layout = one();
    const drawing = draw(layout)!;
    const { key } = layout.sections[0]!;
    expect(targetAt(drawing, { x: 25, y: 500 }, 'seats')).toEqual({ key, row: 0, seat: 2 });
    expect(targetAt(drawing, { x: 25, y: 590 }, 'rows')).toEqual({ key, row: 1 });
    expect(targetAt(drawing, { x: 5000, y: 500 }, 'sections')).toBeNull();
    const seats = seatsBetween(drawing, { x: 100, y: 480 }, { x: 0, y: 520 });
    const selection = selectSeats(drawing.layout, drawing.hall, seats, 'seats', new Map());
    expect(selectedSeatCount(layout, selection)).toBe(2);
    expect(draw({ sections: [] })).toBeNull();
  });
});

describe('snapping', () => {
  const box = { left: 0, right: 100, top: 0, bottom: 100 };

  it('prefers neighbours to the grid', () => {
    const neighbour = { left: 333, right: 433, top: 0, bottom: 100 };
    expect(snapMove(box, 228, 300, [neighbour], 10)).toMatchObject({
      dx: 233,
      dy: 300,
      guides: [{ axis: 'x', at: 333 }],
    });
    expect(snapMove(box, 161, 287, [], 10)).toMatchObject({ dx: 150, dy: 300, guides: [] });
  });

  it('turns by steps of fifteen degrees', () => {
    expect([7, 8, -20, 44].map(snapAngle).map((angle) => angle + 0)).toEqual([0, 15, -15, 45]);
  });
});

describe('undo', () => {
  it('goes back and forth, and forgets what was undone when something new is done', () => {
    let history = History.of(0).push(1, 'one').push(2, 'two').push(3, 'three');
    expect([history.value, history.undoLabel, history.redoLabel]).toEqual([3, 'three', null]);
    history = history.undo().undo();
    expect([history.value, history.redoLabel]).toEqual([1, 'two']);
    history = history.redo().push(9, 'nine');
    expect([history.value, history.redoLabel, history.undo().value]).toEqual([9, null, 2]);
    expect(History.of(0).undo().value).toBe(0);
  });

  it('joins steps of one kind until it is sealed', () => {
    let history = History.of(0).push(1, 'move', 'arrows').push(2, 'move', 'arrows');
    expect(history.undo().value).toBe(0);
    history = history.sealed().push(3, 'move', 'arrows');
    expect(history.undo().value).toBe(2);
  });

  it('keeps a thousand steps', () => {
    let history = History.of(0);
    for (let step = 1; step <= 1_500; step++) history = history.push(step, 'step');
    for (let step = 0; step < 2_000; step++) history = history.undo();
    expect(history.value).toBe(501);
  });
});
