import * as m from '$lib/text/messages';

export function tierLabel(tier: string): string {
  const labels: Record<string, string> = {
    diamond: m.tier_diamond(),
    gold: m.tier_gold(),
    silver: m.tier_silver(),
    bronze: m.tier_bronze(),
  };
  return labels[tier] ?? tier;
}

export function memberStatus(status: string): string {
  const labels: Record<string, string> = {
    pending: m.adminMembers_pending(),
    active: m.adminMembers_active(),
    expired: m.adminMembers_expired(),
  };
  return labels[status] ?? status;
}

export function transferStatus(status: string): string {
  const labels: Record<string, string> = {
    listed: m.adminMembers_transfer_listed(),
    completed: m.adminMembers_transfer_completed(),
    cancelled: m.adminMembers_transfer_cancelled(),
  };
  return labels[status] ?? status;
}
