import { describe, expect, it } from 'vitest';
import { LiveSeries, lastOf, sumOfLast, tableRows, type LiveBoard } from './series';

type Part = Pick<LiveBoard, 'seconds' | 'minutes'>;

function seconds(at: number[], values: Partial<Part['seconds']> = {}): Part['seconds'] {
  const column = (value: number) => at.map(() => value);
  return {
    at,
    waiting: column(5),
    inside: column(1),
    threshold: column(10),
    arrivals: column(2),
    admitted: column(1),
    left: column(0),
    available: column(90),
    held: column(4),
    sold: column(6),
    payments: column(1),
    charged: column(1_000),
    refunds: column(0),
    declined: column(0),
    errors: column(0),
    ...values,
  };
}

const NO_MINUTES = {
  at: [],
  waiting: [],
  inside: [],
  arrivals: [],
  admitted: [],
  left: [],
  payments: [],
  charged: [],
  refunds: [],
};

describe('the series of a sale', () => {
  it('grows by seconds and takes none twice', () => {
    const series = new LiveSeries();
    series.take({ seconds: seconds([100, 101]), minutes: NO_MINUTES });
    series.take({ seconds: seconds([102]), minutes: null });
    series.take({ seconds: seconds([101, 102, 103]), minutes: null });
    expect(series.seconds.at).toEqual([100, 101, 102, 103]);
    expect(series.lastSecond).toBe(103);
    expect(series.seconds.waiting).toHaveLength(4);
  });

  it('keeps a quarter of an hour', () => {
    const series = new LiveSeries();
    const all = Array.from({ length: 1_000 }, (_, index) => index + 1);
    series.take({ seconds: seconds(all), minutes: NO_MINUTES });
    expect(series.seconds.at).toHaveLength(900);
    expect(series.seconds.at[0]).toBe(101);
  });

  it('begins anew with a message that has the whole past', () => {
    const series = new LiveSeries();
    series.take({ seconds: seconds([100]), minutes: NO_MINUTES });
    series.take({ seconds: seconds([50]), minutes: NO_MINUTES });
    expect(series.seconds.at).toEqual([50]);
  });

  it('makes minutes of seconds after those that it was told', () => {
    const told = { ...NO_MINUTES, at: [60], payments: [9], waiting: [3] };
    const series = new LiveSeries();
    series.take({ seconds: seconds([100, 119, 120, 121, 180]), minutes: told });
    expect(series.minutes.at).toEqual([60, 120, 180]);
    expect(series.minutes.payments, 'told ones stay as they are').toEqual([9, 2, 1]);
    expect(series.minutes.waiting).toEqual([3, 5, 5]);
  });

  it('does not make a figure of what nobody knows', () => {
    const series = new LiveSeries();
    series.take({ seconds: seconds([1, 2], { payments: [null, null] }), minutes: NO_MINUTES });
    expect(series.minutes.payments).toEqual([null]);
    expect(sumOfLast(series.seconds.payments, 60)).toBeNull();
    expect(sumOfLast([1, null, 2], 2)).toBe(2);
    expect(lastOf([])).toBeNull();
  });

  it('has a row per step in a table, the newest first', () => {
    const series = new LiveSeries();
    series.take({ seconds: seconds([1, 30, 60, 61, 120, 121]), minutes: NO_MINUTES });
    const rows = tableRows(series.seconds, ['waiting', 'sold'], 60, 2);
    expect(rows).toEqual([
      { at: 121, values: [5, 6] },
      { at: 61, values: [5, 6] },
    ]);
  });
});
