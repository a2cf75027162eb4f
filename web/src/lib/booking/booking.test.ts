import { describe, expect, it } from 'vitest';
import { ApiFailure } from '$lib/api/failure';
import { isUnclear, outcomeOf } from '$lib/checkout/outcome';
import { announcementAt } from './announcement';
import { WishKey } from './idempotency';

describe('a running timer', () => {
  it('is read out at two minutes, one minute and twenty seconds', () => {
    const spoken: number[] = [];
    for (let seconds = 300; seconds > 0; seconds--)
      if (announcementAt(seconds, seconds - 1, '')) spoken.push(seconds - 1);
    expect(spoken).toEqual([120, 60, 20]);
  });

  it('says the most urgent when a sleeping device wakes up', () => {
    const asleep = announcementAt(200, 15, 'x');
    expect(asleep).toBe(announcementAt(21, 20, 'x'));
    expect(announcementAt(10, 0, 'x')).toBeNull();
  });
});

describe('a wish', () => {
  it('keeps its key for every attempt and gets a new one when it is decided', () => {
    const key = new WishKey();
    const first = key.for({ seats: [1, 2] });
    expect(key.for({ seats: [1, 2] })).toBe(first);
    const other = key.for({ seats: [1, 3] });
    expect(other).not.toBe(first);
    key.decided();
    expect(key.for({ seats: [1, 3] })).not.toBe(other);
  });
});

describe('a payment', () => {
  it('is checked as long as nobody knows', () => {
    const outcomes = ['approving', 'unknown', 'confirmed', 'failed', 'refunded', 'pending'].map(
      (status) => outcomeOf({ status, isSettled: false }),
    );
    expect(outcomes).toEqual(['checking', 'checking', 'paid', 'failed', 'returned', 'not-started']);
  });

  it('without an answer may have been made; a declined one was not', () => {
    expect(isUnclear(ApiFailure.network())).toBe(true);
    expect(isUnclear(new ApiFailure(500, { code: 'OUTCOME_UNKNOWN' }))).toBe(true);
    expect(isUnclear(new ApiFailure(402, { code: 'PAYMENT_DECLINED' }))).toBe(false);
    expect(isUnclear(new ApiFailure(409, { code: 'RESERVATION_EXPIRED' }))).toBe(false);
  });
});
