/** The test cards of the sandbox that a page offers; each shows another course of a payment. */
import * as m from '$lib/text/messages';

export interface TestCard {
  readonly id: string;
  readonly label: () => string;
}

export const TEST_CARDS: readonly TestCard[] = [
  { id: 'approve', label: m.checkout_card_approve },
  { id: 'slow', label: m.checkout_card_slow },
  { id: 'decline', label: m.checkout_card_decline },
  { id: 'insufficient', label: m.checkout_card_insufficient },
  { id: 'stumble', label: m.checkout_card_stumble },
  { id: 'timeout', label: m.checkout_card_timeout },
  { id: 'wrong-amount', label: m.checkout_card_wrong_amount },
];
