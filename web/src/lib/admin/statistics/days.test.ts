import { describe, expect, it } from 'vitest';
import { dayColumns, dayText, runningTotal, startOfDay } from './days';

describe('days of statistics', () => {
  it('are Korean days', () => {
    expect(new Date(startOfDay('2026-11-15') * 1_000).toISOString()).toBe(
      '2026-11-14T15:00:00.000Z',
    );
    expect(dayText(startOfDay('2026-11-15'))).toBe('11/15');
  });

  it('have a point each, also those on which nothing happened', () => {
    const days = [
      { date: '2026-11-15', sold: 5 },
      { date: '2026-11-12', sold: 2 },
    ];
    const columns = dayColumns(days, [(day) => day.sold]);
    expect(columns.at.map(dayText)).toEqual(['11/12', '11/13', '11/14', '11/15']);
    expect(columns.values).toEqual([[2, 0, 0, 5]]);
    expect(columns.rows[0], 'the newest first').toEqual({ at: columns.at[3], values: [5] });
    expect(dayColumns([], [() => 1]).at).toEqual([]);
    expect(dayColumns(days.slice(1), [(day) => day.sold]).values).toEqual([[0, 2]]);
  });

  it('add up', () => {
    expect(runningTotal([2, 0, 5])).toEqual([2, 2, 7]);
  });
});
