/** The published file of a draw. It can be large: there is no limit of time but the fan's own. */
import { ApiFailure } from '$lib/api/failure';
import { locale } from '$lib/text/locale';

export function drawFilePath(eventId: string): string {
  return `/api/queue/draw/${eventId}/file`;
}

export async function loadDrawFile(eventId: string, signal: AbortSignal): Promise<string> {
  const headers = { 'accept-language': locale() };
  const response = await fetch(drawFilePath(eventId), { headers, signal }).catch(() => {
    throw ApiFailure.network();
  });
  if (response.ok) return response.text();
  const fields = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  throw new ApiFailure(response.status, fields);
}
