import { expect, test } from 'vitest';
import { saleAction } from './saleAction';

const event = {
  status: 'on_sale',
  inventoryReady: true,
  saleStartsAt: '2026-12-01T10:00:00Z',
  preSaleSchedule: null,
};
const crowd = { phase: 'open', soldOut: false, waiting: 0, opensAt: '2026-12-01T10:00:00Z' };

test('an open sale without a line is booked, with a line it is joined', () => {
  expect(saleAction(event, crowd)).toMatchObject({ kind: 'enter', label: '예매하기' });
  expect(saleAction(event, { ...crowd, waiting: 3 })).toMatchObject({ label: '대기열 입장' });
  expect(saleAction(event, { ...crowd, phase: 'paused' })).toMatchObject({ label: '대기열 입장' });
});

test('before the opening the room can be entered as soon as it gathers', () => {
  const upcoming = { ...event, status: 'upcoming' };
  expect(saleAction(upcoming, { ...crowd, phase: 'closed' })).toEqual({
    kind: 'wait',
    until: crowd.opensAt,
  });
  expect(saleAction(upcoming, { ...crowd, phase: 'gathering' })).toMatchObject({
    kind: 'enter',
    phase: 'gathering',
  });
});

test('without the crowd document the event itself decides', () => {
  expect(saleAction(event, undefined).kind).toBe('enter');
  const schedule = { diamond: '2026-11-29T10:00:00Z', gold: '', silver: '', general: '' };
  expect(
    saleAction({ ...event, status: 'upcoming', preSaleSchedule: schedule }, undefined),
  ).toEqual({
    kind: 'wait',
    until: schedule.diamond,
  });
});

test('sold out, ended and cancelled sales offer nothing to enter', () => {
  expect(saleAction(event, { ...crowd, soldOut: true })).toEqual({ kind: 'sold-out' });
  expect(saleAction({ ...event, status: 'ended' }, undefined)).toMatchObject({ kind: 'none' });
  expect(saleAction({ ...event, status: 'cancelled' }, crowd)).toMatchObject({
    kind: 'none',
    hasTransfers: false,
  });
  expect(saleAction({ ...event, inventoryReady: false }, undefined)).toMatchObject({
    kind: 'none',
  });
});
