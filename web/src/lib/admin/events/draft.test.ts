import { expect, test } from 'vitest';
import type { Schemas } from '$lib/api/client';
import { ApiFailure } from '$lib/api/failure';
import { createBody, draftOf, editBody, emptyDraft, isEmptyDraft, wholeNumber } from './draft';
import { firstIncomplete, problemsOf, refusalOf } from './problems';

function complete() {
  return {
    ...emptyDraft(),
    title: '겨울 공연',
    venueId: 'venue',
    hallId: 'hall',
    artistId: 'artist',
    prices: { VIP: '165,000', R: '99000' },
    startsAt: '2027-02-01T19:30',
    saleStartsAt: '2027-01-01T20:00',
    saleEndsAt: '2027-01-31T20:00',
  };
}

test('numbers are read as people type them', () => {
  expect(wholeNumber('165,000')).toBe(165_000);
  expect(wholeNumber(' 1 000 ')).toBe(1_000);
  for (const wrong of ['', '1.5', '-3', '1e3', '10000000000', '천원'])
    expect(wholeNumber(wrong)).toBeNull();
});

test('a complete draft has no problem and becomes a seated event', () => {
  expect(firstIncomplete(complete())).toBeNull();
  expect(createBody(complete())).toMatchObject({
    hallId: 'hall',
    prices: { VIP: 165_000, R: 99_000 },
    startsAt: '2027-02-01T10:30:00.000Z',
  });
  expect(createBody(complete())).not.toHaveProperty('ticketTypes');
  expect(createBody(complete())).not.toHaveProperty('cancelPolicy');
});

test('a standing event has a venue and ticket types', () => {
  const type = { key: '1', name: '스탠딩', description: '', price: '55,000', total: '300' };
  const draft = { ...complete(), kind: 'standing' as const, ticketTypes: [type] };
  expect(createBody(draft)).toMatchObject({
    venueId: 'venue',
    ticketTypes: [{ name: '스탠딩', price: 55_000, total: 300 }],
  });
  expect(createBody(draft)).not.toHaveProperty('hallId');
});

test('each step tells what it lacks', () => {
  const empty = emptyDraft();
  expect(Object.keys(problemsOf('basics', empty))).toEqual(['title']);
  expect(Object.keys(problemsOf('place', empty))).toEqual(['venueId', 'hallId']);
  expect(Object.keys(problemsOf('times', empty))).toEqual([
    'startsAt',
    'saleStartsAt',
    'saleEndsAt',
  ]);
  expect(firstIncomplete(empty)).toBe('basics');
});

test('times in a wrong order are found', () => {
  const problems = problemsOf('times', { ...complete(), saleEndsAt: '2026-12-31T20:00' });
  expect(Object.keys(problems)).toEqual(['saleEndsAt']);
  const late = problemsOf('times', { ...complete(), saleEndsAt: '2027-02-02T20:00' });
  expect(Object.keys(late)).toEqual(['saleEndsAt']);
});

test('a pre-sale needs an artist and more than 48 hours', () => {
  const presale = { ...complete(), hasPresale: true };
  expect(problemsOf('opening', presale)).toEqual({});
  expect(problemsOf('opening', { ...presale, artistId: '' })).toHaveProperty('hasPresale');
  const short = { ...presale, saleEndsAt: '2027-01-03T20:00' };
  expect(problemsOf('opening', short)).toHaveProperty('hasPresale');
});

test('an edit sends only what differs', () => {
  const before = complete();
  expect(editBody(before, before, 7)).toEqual({ revision: 7 });
  const moved = { ...before, startsAt: '2027-02-02T19:30', artistId: '' };
  expect(editBody(moved, before, 7)).toEqual({
    revision: 7,
    startsAt: '2027-02-02T10:30:00.000Z',
    artistName: '',
  });
});

test('the draft of an event has its fields, and its times only on request', () => {
  const event = {
    title: '겨울 공연',
    description: '',
    ageRating: '12',
    kind: 'standing',
    venueId: 'venue',
    prices: {},
    ticketTypes: [{ id: '1', name: 'A', description: '', price: 1_000, total: 10 }],
    startsAt: '2027-02-01T10:30:00Z',
    saleStartsAt: '2027-01-01T11:00:00Z',
    saleEndsAt: '2027-01-31T11:00:00Z',
    hasPresale: false,
    seatsPerUserMax: 2,
    requiresIdentity: true,
    casting: [{ name: '김우르', role: '모차르트' }, { name: '합창단' }],
    cancelPolicy: {
      graceHours: 1,
      graceDaysBeforeMin: 2,
      bands: [{ daysBeforeMin: 0, percent: 5 }],
    },
  } as unknown as Schemas['AdminEventView'];
  const draft = draftOf(event, true);
  expect(draft).toMatchObject({ startsAt: '2027-02-01T19:30', hasOwnFees: true, graceHours: '1' });
  expect(draft.ticketTypes).toMatchObject([{ name: 'A', price: '1000', total: '10' }]);
  expect(draftOf(event, false).startsAt).toBe('');
  expect(draft.casting).toBe('김우르 / 모차르트\n합창단');
  const typed = { ...draft, casting: ' 김우르 / 살리에리\n\n합창단 ' };
  expect(editBody(typed, draft, 7).casting).toEqual([
    { name: '김우르', role: '살리에리' },
    { name: '합창단', role: '' },
  ]);
});

test('a refusal of the server leads to its step', () => {
  expect(refusalOf(new ApiFailure(400, { code: 'INVALID_SCHEDULE' }))?.step).toBe('times');
  expect(refusalOf(new ApiFailure(500, { code: 'INTERNAL_ERROR' }))).toBeNull();
});

test('a draft in which nothing was typed is empty', () => {
  expect(isEmptyDraft(emptyDraft())).toBe(true);
  expect(isEmptyDraft(complete())).toBe(false);
});
