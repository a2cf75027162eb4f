import * as m from '$lib/text/messages';

export const USER_ROLES = ['user', 'staff', 'organiser', 'support', 'admin'] as const;

export function roleLabel(role: string): string {
  const labels: Record<string, string> = {
    user: m.adminUsers_role_user(),
    staff: m.adminUsers_role_staff(),
    organiser: m.adminUsers_role_organiser(),
    support: m.adminUsers_role_support(),
    admin: m.adminUsers_role_admin(),
  };
  return labels[role] ?? role;
}
