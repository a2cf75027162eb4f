/** Publishes a draft: the event, then the settings of its waiting room. */
import { api, call, type Schemas } from '$lib/api/client';
import { ApiFailure } from '$lib/api/failure';
import { createBody, type EventDraft, wholeNumber } from './draft';

const TRIES = 30;
const PAUSE_MS = 500;

const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));

export async function createEvent(
  draft: EventDraft,
  keyFor: (wish: unknown) => string,
): Promise<Schemas['AdminEventView']> {
  const body = createBody(draft);
  const { event } = await call(
    api.POST('/api/admin/events', {
      params: { header: { 'Idempotency-Key': keyFor(body) } },
      body,
    }),
  );
  return event;
}

/** The inventory and the room appear a moment after their event. */
async function untilReady(eventId: string): Promise<void> {
  const params = { path: { id: eventId } };
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const { event } = await call(api.GET('/api/admin/events/{id}', { params }));
    if (event.inventoryReady) return;
    await pause();
  }
}

export async function makeLottery(eventId: string, draft: EventDraft): Promise<void> {
  await untilReady(eventId);
  const gatheringSeconds = (wholeNumber(draft.gatheringMinutes) ?? 0) * 60;
  for (let attempt = 1; ; attempt++) {
    try {
      await call(
        api.PATCH('/api/admin/queue/{eventId}', {
          params: { path: { eventId } },
          body: { opening: 'lottery', gatheringSeconds },
        }),
      );
      return;
    } catch (error) {
      if (ApiFailure.from(error).status !== 404 || attempt >= TRIES) throw error;
      await pause();
    }
  }
}
