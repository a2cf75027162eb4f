import { expect, test } from 'vitest';
import { type LogEntry, mergeByTime } from '../log';
import { cut } from './reader';

function entry(id: string, createdAt: string, service: LogEntry['service'] = 'catalog'): LogEntry {
  return { id, createdAt, service } as LogEntry;
}

test('the logs of services are joined by time, newest first', () => {
  const joined = mergeByTime([
    [entry('c', '2026-11-03T00:00:00Z'), entry('a', '2026-11-01T00:00:00Z')],
    [entry('b', '2026-11-02T00:00:00Z', 'auth')],
  ]);
  expect(joined.map(({ id }) => id)).toEqual(['c', 'b', 'a']);
});

test('entries of one time are not divided between two parts', () => {
  const entries = [
    entry('d', '2026-11-03T00:00:00Z'),
    entry('c', '2026-11-02T00:00:00Z'),
    entry('b', '2026-11-02T00:00:00Z'),
    entry('a', '2026-11-01T00:00:00Z'),
  ];
  const { items, next } = cut(entries, 2);
  expect(items.map(({ id }) => id)).toEqual(['d', 'c', 'b']);
  expect(next).toBe('2026-11-02T00:00:00Z');
});

test('the last part has no next one', () => {
  expect(cut([entry('a', '2026-11-01T00:00:00Z')], 2).next).toBeNull();
});
