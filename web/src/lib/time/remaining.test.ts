import { expect, test } from 'vitest';
import { remaining, twoDigits } from './remaining';

test('a remaining time is split into its parts', () => {
  const left = remaining(((2 * 24 + 3) * 3600 + 4 * 60 + 5) * 1000, 0);
  expect(left).toMatchObject({ days: 2, hours: 3, minutes: 4, seconds: 5 });
});

test('a countdown ends when the time has come and not before', () => {
  expect(remaining(1000, 999).totalSeconds).toBe(1);
  expect(remaining(1000, 1000).totalSeconds).toBe(0);
  expect(remaining(1000, 5000).totalSeconds).toBe(0);
});

test('figures have two digits', () => {
  expect([0, 9, 10].map(twoDigits)).toEqual(['00', '09', '10']);
});
