/** When members of each tier may buy, while the event is written. The server says it afterwards. */
import * as m from '$lib/text/messages';

const HOUR_MS = 3_600_000;

export function presaleTimes(saleStart: string): { label: string; at: string }[] {
  const after = (hours: number) => new Date(Date.parse(saleStart) + hours * HOUR_MS).toISOString();
  return [
    { label: m.tier_diamond(), at: after(0) },
    { label: m.tier_gold(), at: after(1) },
    { label: m.tier_silver(), at: after(24) },
    { label: m.event_general_sale(), at: after(48) },
  ];
}
