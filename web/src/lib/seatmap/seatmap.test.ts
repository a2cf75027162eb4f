import { describe, expect, it } from 'vitest';
import { SeatGrid } from './grid';
import { ACCESSIBLE, gradeOf, type Hall, type LayoutView, makeHall, seatName } from './hall';
import { EventParser, followSeats, type LiveSource } from './live';
import { sectionAt, showsSeats } from './paint';
import { palette } from './palette';
import { SeatStatuses } from './statuses';
import { between, clamp, fit, toHall, toScreen, zoomAt } from './viewport';

const ROW = { label: '1', seats: 3 };

function layout(...sections: Partial<LayoutView['sections'][number]>[]): LayoutView {
  return {
    sections: sections.map((section, index) => ({
      name: `S${index}`,
      grade: 'R',
      rows: [ROW],
      ...section,
    })),
  } as LayoutView;
}

function at(hall: Hall, seat: number): [number, number] {
  return [Math.round(hall.x[seat]!), Math.round(hall.y[seat]!)];
}

/** 50,000 seats in a hundred sections. */
function stadium(): Hall {
  const rows = Array.from({ length: 20 }, (_, i) => ({ label: String(i + 1), seats: 25 }));
  const sections = Array.from({ length: 100 }, (_, i) => ({
    x: (i % 10) * 1500,
    y: Math.floor(i / 10) * 2200,
    rows,
  }));
  return makeHall(layout(...sections));
}

describe('a hall', () => {
  it('numbers seats by section, row and place', () => {
    const hall = makeHall(
      layout(
        { name: 'A', grade: 'VIP', rows: [ROW, { label: '2', seats: 1 }] },
        { name: 'B', rows: [{ label: '7', seats: 2, firstNumber: 11, accessible: [12] }] },
      ),
    );
    expect(hall.seatCount).toBe(6);
    expect(seatName(hall, 3)).toMatchObject({ section: 'A', row: '2', number: 1, grade: 'VIP' });
    expect(seatName(hall, 5)).toMatchObject({ section: 'B', row: '7', number: 12 });
    expect(hall.flags[5]! & ACCESSIBLE).toBeTruthy();
    expect(seatName(hall, 4).isAccessible).toBe(false);
    expect(gradeOf(hall, 4)).toBe(1);
  });

  it('puts a row from left to right and the next one behind it', () => {
    const hall = makeHall(layout({ x: 100, y: 500, rows: [ROW, { ...ROW, label: '2' }] }));
    expect([0, 1, 2].map((seat) => at(hall, seat))).toEqual([
      [50, 500],
      [100, 500],
      [150, 500],
    ]);
    expect(at(hall, 4)).toEqual([100, 590]);
  });

  it('turns a section so that its rows go away from the stage', () => {
    // Right of the stage, as the demo arena places it: 90 degrees to the right is -90.
    const hall = makeHall(
      layout({ x: 1000, y: 0, angleDegrees: -90, rows: [ROW, { ...ROW, label: '2' }] }),
    );
    expect(at(hall, 1)).toEqual([1000, 0]);
    expect(at(hall, 4)).toEqual([1090, 0]);
    // The left seat, seen from the audience, is the one further down.
    expect(at(hall, 0)).toEqual([1000, 50]);
  });

  it('bends rows around the stage', () => {
    const hall = makeHall(layout({ y: 700, curveRadius: 700, rows: [{ label: '1', seats: 21 }] }));
    const distances = [0, 10, 20].map((seat) => Math.hypot(hall.x[seat]!, hall.y[seat]!));
    expect(distances.map(Math.round)).toEqual([700, 700, 700]);
    expect(hall.y[0]!).toBeLessThan(hall.y[10]!);
  });

  it('knows which section is around a point', () => {
    const hall = makeHall(layout({ x: 0, y: 500 }, { x: 1000, y: 500 }));
    expect(sectionAt(hall, 1000, 500)).toBe(1);
    expect(sectionAt(hall, 500, 500)).toBeNull();
  });
});

describe('the grid', () => {
  it('finds the same seats in an area as a look at all of them', () => {
    const hall = stadium();
    const grid = new SeatGrid(hall);
    const area = { left: 1000, right: 4200, top: 900, bottom: 5000 };
    const found: number[] = [];
    grid.forEachIn(area, (seat) => found.push(seat));
    const expected: number[] = [];
    for (let seat = 0; seat < hall.seatCount; seat++) {
      const [x, y] = [hall.x[seat]!, hall.y[seat]!];
      if (x >= area.left && x <= area.right && y >= area.top && y <= area.bottom)
        expected.push(seat);
    }
    expect(expected.length).toBeGreaterThan(1000);
    expect(found.sort((a, b) => a - b)).toEqual(expected);
  });

  it('finds the nearest seat that is accepted', () => {
    const hall = makeHall(layout({ y: 500 }));
    const grid = new SeatGrid(hall);
    expect(grid.nearest(48, 505, 100)).toBe(2);
    expect(grid.nearest(48, 505, 100, (seat) => seat !== 2)).toBe(1);
    expect(grid.nearest(900, 900, 100)).toBeNull();
  });

  it('goes from seat to seat and over gaps with the arrow keys', () => {
    const hall = makeHall(
      layout({ y: 500, rows: [ROW, { ...ROW, label: '2' }] }, { x: 3000, y: 500 }),
    );
    const grid = new SeatGrid(hall);
    expect(grid.neighbour(0, 1, 0)).toBe(1);
    expect(grid.neighbour(1, 0, 1)).toBe(4);
    expect(grid.neighbour(2, 1, 0)).toBe(6);
    expect(grid.neighbour(0, -1, 0)).toBeNull();
  });

  it('answers for a screen of a stadium within a frame', () => {
    const grid = new SeatGrid(stadium());
    const startedAt = performance.now();
    for (let i = 0; i < 100; i++)
      grid.forEachIn({ left: i * 10, right: i * 10 + 3600, top: 0, bottom: 6000 }, () => {});
    expect((performance.now() - startedAt) / 100).toBeLessThan(16);
  });
});

describe('statuses', () => {
  const hall = makeHall(layout({}, { grade: 'S' }));
  // Seats 0 to 5: free, held, sold, free, free, sold.
  const all = btoa(String.fromCharCode(0b00_10_01_00, 0b10_00));

  it('reads two bits per seat and counts what is free', () => {
    const statuses = new SeatStatuses(hall);
    statuses.apply({ version: 4, statuses: all });
    expect([0, 1, 2, 3, 4, 5].map((seat) => statuses.of(seat))).toEqual([0, 1, 2, 0, 0, 2]);
    expect([statuses.freeInSection(0), statuses.freeInSection(1)]).toEqual([1, 2]);
    expect(statuses.freeInGrade(1)).toBe(2);
  });

  it('takes changes once and ignores older ones', () => {
    const statuses = new SeatStatuses(hall);
    statuses.apply({ version: 4, statuses: all });
    const changes = [
      [0, 1],
      [1, 0],
    ];
    expect(statuses.apply({ version: 5, changes })).toEqual([
      { seat: 0, from: 0, to: 1 },
      { seat: 1, from: 1, to: 0 },
    ]);
    expect(statuses.apply({ version: 5, changes })).toEqual([]);
    expect(statuses.apply({ version: 4, changes: [[3, 2]] })).toEqual([]);
    expect(statuses.freeInSection(0)).toBe(1);
    expect(statuses.version).toBe(5);
  });

  it('replaces everything by whole statuses of any version', () => {
    const statuses = new SeatStatuses(hall);
    statuses.apply({ version: 9, changes: [[0, 2]] });
    statuses.apply({ version: 2, statuses: btoa('\0\0') });
    expect(statuses.isFree(0)).toBe(true);
    expect(statuses.version).toBe(2);
  });
});

describe('the viewport', () => {
  const area = { left: -1000, right: 1000, top: 0, bottom: 1000 };

  it('shows everything at first', () => {
    const view = fit(400, 400, area);
    const from = toScreen(view, area.left, area.top);
    const to = toScreen(view, area.right, area.bottom);
    expect(from.x).toBeGreaterThanOrEqual(0);
    expect(to.x).toBeLessThanOrEqual(400);
    expect(toScreen(view, 0, 500)).toEqual({ x: 200, y: 200 });
  });

  it('zooms around the point under the fingers', () => {
    const view = fit(400, 400, area);
    const before = toHall(view, 70, 90);
    const after = toHall(zoomAt(view, 70, 90, view.scale * 3), 70, 90);
    expect(after.x).toBeCloseTo(before.x);
    expect(after.y).toBeCloseTo(before.y);
  });

  it('stays near the hall and within its scales', () => {
    const view = clamp({ ...fit(400, 400, area), x: 9999, scale: 99 }, area, 0.1, 1);
    expect([view.x, view.scale]).toEqual([1000, 1]);
  });

  it('ends a flight where it was going', () => {
    const [from, to] = [fit(400, 400, area), { ...fit(400, 400, area), x: 300, scale: 1 }];
    expect(between(from, to, 1).x).toBe(300);
    expect(between(from, to, 1).scale).toBeCloseTo(1);
  });

  it('shows sections from far and seats from near', () => {
    const hall = stadium();
    const view = fit(360, 500, hall.bounds);
    expect(showsSeats(hall, view)).toBe(false);
    expect(showsSeats(hall, { ...view, scale: 0.2 })).toBe(true);
  });
});

describe('the stream', () => {
  it('is read in any pieces, without comments', () => {
    const parser = new EventParser();
    expect(parser.push(': hello\n\nid: 4\nda')).toEqual([]);
    expect(parser.push('ta: {"version":4}\n')).toEqual([]);
    expect(parser.push('\ndata: {"version":5}\r\n\r\n')).toEqual([
      '{"version":4}',
      '{"version":5}',
    ]);
  });

  it('is followed, and what it missed is asked for afterwards', async () => {
    const end = new AbortController();
    const taken: number[] = [];
    const source: LiveSource = {
      version: () => taken.at(-1) ?? 0,
      take: (map) => void taken.push(map.version),
      connected: () => {},
      openStream: async () =>
        new Blob(['data: {"version":1}\n\n']).stream() as ReadableStream<Uint8Array>,
      ask: async (since) => {
        end.abort();
        return { version: since + 1, eventId: '' };
      },
    };
    await followSeats(source, end.signal);
    expect(taken).toEqual([1, 2]);
  });
});

it('gives grades different colours and marks', () => {
  for (const isDark of [false, true]) {
    const looks = [0, 1, 2, 3, 4, 5].map((grade) => palette(isDark).grade(grade));
    expect(new Set(looks.map((look) => look.fill)).size).toBe(6);
    expect(new Set(looks.map((look) => look.mark)).size).toBe(6);
  }
});
