import { expect, it } from 'vitest';
import { newestEvents } from './newest';

it('the newest events come first, and only some of them', () => {
  const ids = ['01a1-3', '01a1-1', '01a2-0', '01a1-2', '01a0-9'];
  const newest = newestEvents(ids.map((id) => ({ id }))).map(({ id }) => id);
  expect(newest).toEqual(['01a2-0', '01a1-3', '01a1-2', '01a1-1']);
});
