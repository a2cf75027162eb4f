import { expect, test } from 'vitest';
import { moveMonth, nextDay, readFilters, toQuery, weeksOf } from './filters';

test('without parameters what is on sale is shown', () => {
  expect(readFilters(new URLSearchParams())).toMatchObject({
    status: 'on_sale',
    sort: 'saleStart',
    page: 1,
    view: 'list',
  });
});

test('unknown values count as absent', () => {
  const filters = readFilters(
    new URLSearchParams('status=x&sort=y&from=2026-1-1&month=2026-13&page=-4'),
  );
  expect(filters).toMatchObject({ status: 'on_sale', sort: 'saleStart', from: null, page: 1 });
  expect(filters.month).toMatch(/^\d{4}-\d{2}$/);
});

test('a day that no month has, and an artist without an id, count as absent', () => {
  const filters = readFilters(new URLSearchParams('from=2026-99-99&to=2026-02-30&artist=x'));
  expect(filters).toMatchObject({ from: null, to: null, artistId: null });
  expect(() => toQuery(filters)).not.toThrow();
});

test('days are Korean, and the last one is included', () => {
  const filters = readFilters(new URLSearchParams('status=all&from=2026-12-01&to=2026-12-31'));
  expect(toQuery(filters)).toEqual({
    from: '2026-12-01T00:00:00+09:00',
    to: '2027-01-01T00:00:00+09:00',
    sort: 'saleStart',
    page: 1,
    limit: 24,
  });
});

test('months and days move over the borders of years', () => {
  expect(moveMonth('2026-12', 1)).toBe('2027-01');
  expect(moveMonth('2026-01', -1)).toBe('2025-12');
  expect(nextDay('2028-02-28')).toBe('2028-02-29');
});

test('weeks begin on Sunday and are whole', () => {
  const weeks = weeksOf('2026-12');
  expect(weeks[0]).toEqual([
    null,
    null,
    '2026-12-01',
    '2026-12-02',
    '2026-12-03',
    '2026-12-04',
    '2026-12-05',
  ]);
  expect(weeks.every((week) => week.length === 7)).toBe(true);
  expect(weeks.flat().filter(Boolean)).toHaveLength(31);
});
