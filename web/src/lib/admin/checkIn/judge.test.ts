import { expect, test } from 'vitest';
import { judge, type ListedTicket, type OwnScan } from './judge';

const TICKET: ListedTicket = { id: 'a', number: 'T-1', issue: 2, status: 'unused' };
const listed = (status: string): ListedTicket => ({ ...TICKET, status, door: '북문' });
const own = (direction: 'entry' | 'exit'): OwnScan => ({ direction, door: '남문', scannedAt: 0 });

interface Case {
  ticket?: ListedTicket | undefined;
  issue?: number | null;
  own?: OwnScan[];
  allowsReentry?: boolean;
}

function outcome(direction: 'entry' | 'exit', one: Case): string {
  const known = { ticket: TICKET, issue: 2, own: [], allowsReentry: false, ...one };
  return judge(known, direction).outcome;
}

test('a ticket on the list comes in once', () => {
  expect(outcome('entry', {})).toBe('accepted');
  expect(outcome('entry', { ticket: listed('inside') })).toBe('duplicate');
  expect(outcome('entry', { own: [own('entry')] })).toBe('duplicate');
  expect(outcome('entry', { ticket: listed('cancelled') })).toBe('cancelled');
  expect(outcome('entry', { ticket: listed('outside') })).toBe('duplicate');
});

test('an old issue is refused, and one that is newer than the list is not', () => {
  expect(outcome('entry', { issue: 1 })).toBe('reissued');
  expect(outcome('entry', { issue: 3 })).toBe('accepted');
});

test('a signed ticket that was sold after the list was read comes in, a typed number does not', () => {
  expect(outcome('entry', { ticket: undefined })).toBe('accepted');
  expect(outcome('entry', { ticket: undefined, issue: null })).toBe('unknown');
});

test('with re-entry entries and exits take turns', () => {
  const allowsReentry = true;
  expect(outcome('exit', {})).toBe('reentry_not_allowed');
  expect(outcome('exit', { allowsReentry })).toBe('not_inside');
  expect(outcome('exit', { allowsReentry, ticket: listed('inside') })).toBe('accepted');
  expect(outcome('entry', { allowsReentry, ticket: listed('outside') })).toBe('accepted');
  const left = [own('entry'), own('exit')];
  expect(outcome('entry', { allowsReentry, own: left })).toBe('accepted');
  expect(outcome('exit', { allowsReentry, own: left })).toBe('not_inside');
});

test('a duplicate says where the ticket was before', () => {
  const known = { ticket: listed('inside'), issue: 2, own: [], allowsReentry: false };
  expect(judge(known, 'entry').earlier).toEqual({ door: '북문', at: null });
  const here = judge({ ...known, ticket: TICKET, own: [own('entry')] }, 'entry');
  expect(here.earlier).toEqual({ door: '남문', at: '1970-01-01T00:00:00.000Z' });
});
