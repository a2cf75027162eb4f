/** What a booking in a pre-sale costs beside the tickets, by tier. The server says how much. */
import { api, call, type Schemas } from '$lib/api/client';
import { createQuery } from '$lib/api/query.svelte';
import { clock } from '$lib/time/clock.svelte';

type PresaleEvent = Pick<Schemas['EventView'], 'artistId' | 'preSaleSchedule'>;

/** The fee of the user who books now; zero while it is not known. */
export function createBookingFee(event: () => PresaleEvent): { readonly amount: number } {
  const artistId = $derived.by(() => {
    const { artistId, preSaleSchedule } = event();
    const isPresale = preSaleSchedule != null && Date.parse(preSaleSchedule.general) > clock.nowMs;
    return isPresale ? (artistId ?? null) : null;
  });
  const benefits = createQuery(
    () => artistId && `benefits/${artistId}`,
    () =>
      call(
        api.GET('/api/memberships/benefits/{artistId}', {
          params: { path: { artistId: artistId ?? '' } },
        }),
      ),
    { staleMs: 600_000 },
  );
  return {
    get amount() {
      return artistId ? (benefits.data?.bookingFeeSurcharge ?? 0) : 0;
    },
  };
}
