/** What the user chose for an event, kept in this tab: it survives reloads, the queue and the payment. */
export interface KeptChoice {
  readonly seatIds: readonly number[];
  /** Quantities of a standing event by ticket type. */
  readonly quantities: Readonly<Record<string, number>>;
  /** The hold that was made of it. */
  readonly reservationId: string | null;
}

const NOTHING: KeptChoice = { seatIds: [], quantities: {}, reservationId: null };
const key = (eventId: string) => `urr.choice.${eventId}`;

export function keptChoice(eventId: string): KeptChoice {
  try {
    const stored = JSON.parse(sessionStorage.getItem(key(eventId)) ?? '{}') as Partial<KeptChoice>;
    return { ...NOTHING, ...stored };
  } catch {
    return NOTHING;
  }
}

export function keepChoice(eventId: string, changes: Partial<KeptChoice>): void {
  try {
    const choice = { ...keptChoice(eventId), ...changes };
    sessionStorage.setItem(key(eventId), JSON.stringify(choice));
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

export function forgetChoice(eventId: string): void {
  try {
    sessionStorage.removeItem(key(eventId));
  } catch {
    // Nothing was kept.
  }
}
