import { expect, it } from 'vitest';
import { newestEvents } from './newest';

it('some of the newest events are shown, without those that are over', () => {
  const statuses = ['ended', 'on_sale', 'cancelled', 'upcoming', 'on_sale', 'on_sale', 'upcoming'];
  const newest = newestEvents(statuses.map((status, id) => ({ status, id })));
  expect(newest.map(({ id }) => id)).toEqual([1, 3, 4, 5]);
});
