import { expect, test } from 'vitest';
import { cancelAmounts } from './cancelAmounts';

const ticket = (ticketNumber: string, price: number, cancellationFee: number) => ({
  ticketNumber,
  seatId: null,
  price,
  cancellationFee,
  refundAmount: price - cancellationFee,
});
const PREVIEW = {
  refundAmount: 270_000,
  cancellationFee: 32_000,
  rule: 'PERCENT_10',
  until: '2026-12-15T00:00:00Z',
  bookingFeeRefund: 0,
  tickets: [ticket('T-1', 100_000, 10_000), ticket('T-2', 200_000, 20_000)],
};

test('all tickets give what the server says for the whole reservation', () => {
  expect(cancelAmounts(PREVIEW, ['T-1', 'T-2'], 2)).toEqual({
    paid: 302_000,
    fee: 32_000,
    refund: 270_000,
    isWhole: true,
  });
});

test('some tickets give their own sums, and the booking fee stays', () => {
  const expected = { paid: 200_000, fee: 20_000, refund: 180_000, isWhole: false };
  expect(cancelAmounts(PREVIEW, ['T-2'], 2)).toEqual(expected);
});

test('with a used ticket the rest is not everything', () => {
  expect(cancelAmounts(PREVIEW, ['T-1', 'T-2'], 3)).toMatchObject({
    refund: 270_000,
    isWhole: false,
  });
});

test('a hold without tickets is given up as a whole', () => {
  const unpaid = { ...PREVIEW, refundAmount: 0, cancellationFee: 0, tickets: [] };
  expect(cancelAmounts(unpaid, [], 0)).toMatchObject({ refund: 0, isWhole: true });
});
