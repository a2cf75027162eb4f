/** Reports of posts and comments, and what a moderator decides about them. */
import { api, call, type Schemas } from '$lib/api/client';
import * as m from '$lib/text/messages';
import type { ListPart } from '../pages.svelte';

export type Report = Schemas['ReportView'];

interface Wanted {
  readonly isDecided: boolean;
  readonly artistId: string | null;
  readonly cursor: string | null;
}

export async function readReports(wanted: Wanted): Promise<ListPart<Report>> {
  const query = {
    limit: 20,
    ...(wanted.isDecided && { open: false }),
    ...(wanted.artistId && { artistId: wanted.artistId }),
    ...(wanted.cursor && { cursor: wanted.cursor }),
  };
  const part = await call(api.GET('/api/admin/community/reports', { params: { query } }));
  return { items: part.reports, next: part.nextCursor ?? null };
}

export async function moderate(
  report: Report,
  status: 'visible' | 'hidden',
  note: string,
): Promise<void> {
  const body = { status, note };
  if (report.commentId) {
    const params = { path: { id: report.commentId } };
    await call(api.PUT('/api/admin/community/comments/{id}/status', { params, body }));
  } else {
    const params = { path: { id: report.postId } };
    await call(api.PUT('/api/admin/community/posts/{id}/status', { params, body }));
  }
}

export function reasonLabel(reason: Report['reason']): string {
  const labels: Record<Report['reason'], string> = {
    spam: m.adminModeration_reason_spam(),
    abuse: m.adminModeration_reason_abuse(),
    sexual: m.adminModeration_reason_sexual(),
    personal_data: m.adminModeration_reason_personal(),
    resale: m.adminModeration_reason_resale(),
    other: m.adminModeration_reason_other(),
  };
  return labels[reason];
}
