import { describe, expect, it } from 'vitest';
import { soldOutChoices } from './soldOut';

const grade = (name: string, available: number) => ({
  grade: name,
  price: 1_000,
  total: 10,
  available,
});

describe('what can be asked for', () => {
  it('is what is sold out, and the whole event if all is', () => {
    const names = (...grades: ReturnType<typeof grade>[]) =>
      soldOutChoices({ grades, ticketTypes: [] }, 'all').map(({ name }) => name);
    expect(names(grade('VIP', 0), grade('R', 3))).toEqual(['VIP']);
    expect(names(grade('VIP', 0), grade('R', 0))).toEqual(['all', 'VIP', 'R']);
    expect(names(grade('R', 0))).toEqual(['R']);
    expect(names(grade('R', 1))).toEqual([]);
    expect(soldOutChoices(undefined, 'all')).toEqual([]);
  });
});
