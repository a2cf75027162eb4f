import { expect, test } from 'vitest';
import { refundRows } from './refundRows';

const text = (policy: Parameters<typeof refundRows>[0]) =>
  refundRows(policy).map(({ when, kept }) => `${when}: ${kept}`);

test('the usual fees go down to the day of the event', () => {
  expect(text(null)).toEqual([
    '예매 후 24시간 이내 (공연 3일 전까지): 없음',
    '예매 후 7일 이내 (공연 10일 전까지): 없음',
    '공연 10일 전까지: 10% (최대 4,000원)',
    '공연 9~7일 전: 10%',
    '공연 6~3일 전: 20%',
    '공연 2~1일 전: 30%',
    '공연 당일 시작 전: 90%',
  ]);
});

test('an event can have fees of its own', () => {
  const bands = [
    { daysBeforeMin: 2, percent: 0 },
    { daysBeforeMin: 1, percent: 50 },
    { daysBeforeMin: 0, percent: 100 },
  ];
  expect(text({ graceHours: 0, graceDaysBeforeMin: 0, bands })).toEqual([
    '공연 2일 전까지: 없음',
    '공연 1일 전: 50%',
    '공연 당일 시작 전: 100%',
  ]);
  const one = { graceHours: 0, graceDaysBeforeMin: 0, bands: [{ daysBeforeMin: 0, percent: 10 }] };
  expect(text(one)).toEqual(['공연 시작 전까지: 10%']);
  const two = [
    { daysBeforeMin: 5, percent: 10 },
    { daysBeforeMin: 0, percent: 20 },
  ];
  expect(text({ graceHours: 0, graceDaysBeforeMin: 0, bands: two })[1]).toBe(
    '공연 4일 전부터 시작 전까지: 20%',
  );
});
