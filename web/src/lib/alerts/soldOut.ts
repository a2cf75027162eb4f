/** What of an event is sold out and can be asked for. */
import type { Schemas } from '$lib/api/client';

export interface SoldOutChoice {
  readonly key: string;
  readonly name: string;
  readonly subject: { readonly grade?: string; readonly ticketTypeId?: string };
}

type Stock = Pick<Schemas['EventAvailabilityView'], 'grades' | 'ticketTypes'>;

/** The whole event comes first, if nothing of it is left and there is more than one kind. */
export function soldOutChoices(stock: Stock | undefined, wholeEvent: string): SoldOutChoice[] {
  if (!stock) return [];
  const all = [...stock.grades, ...stock.ticketTypes];
  const grades = stock.grades
    .filter(({ available }) => available === 0)
    .map(({ grade }) => ({ key: `grade:${grade}`, name: grade, subject: { grade } }));
  const types = stock.ticketTypes
    .filter(({ available }) => available === 0)
    .map(({ id, name }) => ({ key: id, name, subject: { ticketTypeId: id } }));
  const choices = [...grades, ...types];
  const isAllGone = choices.length === all.length && all.length > 1;
  return isAllGone ? [{ key: 'all', name: wholeEvent, subject: {} }, ...choices] : choices;
}
