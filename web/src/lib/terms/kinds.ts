/** The kinds of terms: their names and addresses. */
import type { Schemas } from '$lib/api/client';
import * as m from '$lib/text/messages';

export type TermsKind = Schemas['TermsKind'];

const KINDS: readonly TermsKind[] = ['SERVICE', 'PRIVACY', 'MARKETING'];

export const termsNames: Record<TermsKind, string> = {
  SERVICE: m.legal_service(),
  PRIVACY: m.legal_privacy(),
  MARKETING: m.legal_marketing(),
};

export const termsPath = (kind: TermsKind) => `/terms/${kind.toLowerCase()}`;

/** The kind that an address names; null if there is none. */
export function readKind(parameter: string): TermsKind | null {
  return KINDS.find((kind) => kind.toLowerCase() === parameter) ?? null;
}
