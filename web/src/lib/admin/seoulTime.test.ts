import { expect, test } from 'vitest';
import { fromSeoulInput, later, toSeoulInput } from './seoulTime';

test('a time is entered in Korea and sent with its moment', () => {
  expect(fromSeoulInput('2026-12-07T19:30')).toBe('2026-12-07T10:30:00.000Z');
  expect(toSeoulInput('2026-12-07T10:30:00Z')).toBe('2026-12-07T19:30');
});

test('the day may differ', () => {
  expect(fromSeoulInput('2027-01-01T08:00')).toBe('2026-12-31T23:00:00.000Z');
  expect(toSeoulInput('2026-12-31T23:00:00Z')).toBe('2027-01-01T08:00');
});

test('what is no time is none', () => {
  expect(fromSeoulInput('')).toBeNull();
  expect(fromSeoulInput('2026-13-40T99:99')).toBeNull();
});

test('a later time may be on another day', () => {
  expect(later('2026-12-31T23:30', 60)).toBe('2027-01-01T00:30');
  expect(later('', 60)).toBe('');
});
