/** How a membership is shown. What it allows is the server's decision. */
import type { Schemas } from '$lib/api/client';
import * as m from '$lib/text/messages';

type Membership = Pick<Schemas['MembershipView'], 'status' | 'renewableFrom'>;

/** `renewable`: it counts, and the next year can be bought. */
export type MembershipState = 'none' | 'pending' | 'active' | 'renewable' | 'expired';

export function membershipState(membership: Membership | null, nowMs: number): MembershipState {
  if (!membership) return 'none';
  if (membership.status === 'pending') return 'pending';
  if (membership.status === 'expired') return 'expired';
  const isRenewable = membership.renewableFrom && Date.parse(membership.renewableFrom) <= nowMs;
  return isRenewable ? 'renewable' : 'active';
}

const RETURNED = '_RETURNED';

/** Why points were given or taken back. */
export function pointLabel(actionType: string): string {
  if (actionType.endsWith(RETURNED))
    return m.membership_point_returned({ what: pointLabel(actionType.slice(0, -RETURNED.length)) });
  if (actionType.startsWith('MEMBERSHIP')) return m.membership_point_membership();
  if (actionType.startsWith('TICKET')) return m.membership_point_ticket();
  if (actionType.includes('POST') || actionType.includes('COMMUNITY'))
    return m.membership_point_post();
  return actionType;
}
