/** Who works here. What a role may do, the server decides; the pages only leave out what it refuses. */
import { session } from '$lib/session/session.svelte';

export type AdminRole = 'staff' | 'organiser' | 'support' | 'admin';

const ROLES: readonly string[] = ['staff', 'organiser', 'support', 'admin'] satisfies AdminRole[];

/** The role of the user who is logged in; null for fans. */
export function adminRole(): AdminRole | null {
  const role = session.user?.role ?? '';
  return ROLES.includes(role) ? (role as AdminRole) : null;
}

export function hasRole(...roles: readonly AdminRole[]): boolean {
  const role = adminRole();
  return role !== null && roles.includes(role);
}
