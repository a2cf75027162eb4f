/** Alerts of the user: asking, withdrawing, and the list that all pages share. */
import { api, call, type Schemas } from '$lib/api/client';
import { createQuery, invalidate, type Query } from '$lib/api/query.svelte';
import { session } from '$lib/session/session.svelte';

export type AlertList = Schemas['AlertListView'];
export type SaleAlert = Schemas['SaleAlertView'];
export type SeatAlert = Schemas['SeatAlertView'];

const KEY = 'alerts';

/** The user's alerts; nothing is asked for while nobody is logged in. */
export function createAlertsQuery(): Query<AlertList> {
  return createQuery(
    () => session.user && KEY,
    () => call(api.GET('/api/alerts')),
    { staleMs: 10_000 },
  );
}

export async function askSaleAlert(eventId: string): Promise<SaleAlert> {
  const asked = await call(
    api.PUT('/api/alerts/events/{eventId}/sale', { params: { path: { eventId } } }),
  );
  invalidate(KEY);
  return asked;
}

export async function withdrawSaleAlert(eventId: string): Promise<void> {
  await call(api.DELETE('/api/alerts/events/{eventId}/sale', { params: { path: { eventId } } }));
  invalidate(KEY);
}

export async function askSeatAlert(
  eventId: string,
  body: Schemas['SeatAlertBody'],
): Promise<SeatAlert> {
  const asked = await call(
    api.PUT('/api/alerts/events/{eventId}/seats', { params: { path: { eventId } }, body }),
  );
  invalidate(KEY);
  return asked;
}

export async function withdrawSeatAlert(id: string): Promise<void> {
  await call(api.DELETE('/api/alerts/seats/{id}', { params: { path: { id } } }));
  invalidate(KEY);
}
