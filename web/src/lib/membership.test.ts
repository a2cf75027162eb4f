import { expect, test } from 'vitest';
import { membershipState, pointLabel } from './membership';

const NOW = Date.parse('2026-11-16T00:00:00Z');

test('a membership that was never paid is pending, not expired', () => {
  expect(membershipState({ status: 'pending' }, NOW)).toBe('pending');
  expect(membershipState({ status: 'expired' }, NOW)).toBe('expired');
  expect(membershipState(null, NOW)).toBe('none');
});

test('an active membership is renewable in its last month', () => {
  const active = { status: 'active', renewableFrom: '2026-11-16T00:00:00Z' };
  expect(membershipState(active, NOW - 1)).toBe('active');
  expect(membershipState(active, NOW)).toBe('renewable');
});

test('returned points say what was returned', () => {
  expect(pointLabel('TICKET_PURCHASE_RETURNED')).toBe('예매 취소');
  expect(pointLabel('SOMETHING_NEW')).toBe('SOMETHING_NEW');
});
