/** Publishes a draft: the event, then the settings of its waiting room. */
import { api, call, type Schemas } from '$lib/api/client';
import { ApiFailure } from '$lib/api/failure';
import { createBody, type EventDraft, wholeNumber } from './draft';

const ROOM_TRIES = 20;
const ROOM_PAUSE_MS = 500;

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

/** The room appears a moment after its event, so it is asked for some times. */
export async function makeLottery(eventId: string, draft: EventDraft): Promise<void> {
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
      if (ApiFailure.from(error).status !== 404 || attempt >= ROOM_TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, ROOM_PAUSE_MS));
    }
  }
}
