/** The cancellation fees of an event as the rows of a table. */
import type { Schemas } from '$lib/api/client';
import { won } from '$lib/format';
import * as m from '$lib/text/messages';

type Policy = Schemas['CancelPolicyBody'];
type Band = Schemas['FeeBandBody'];

/** What the server applies to events without fees of their own. */
const USUAL: Policy = {
  graceHours: 24,
  graceDaysBeforeMin: 3,
  bands: [
    { daysBeforeMin: 10, freeDays: 7, percent: 10, ticketFeeMax: 4_000 },
    { daysBeforeMin: 7, percent: 10 },
    { daysBeforeMin: 3, percent: 20 },
    { daysBeforeMin: 1, percent: 30 },
    { daysBeforeMin: 0, percent: 90 },
  ],
};

export interface RefundRow {
  readonly when: string;
  readonly kept: string;
}

export function refundRows(policy: Policy | null | undefined): RefundRow[] {
  const { graceHours: hours, graceDaysBeforeMin: days, bands } = policy ?? USUAL;
  const rows: RefundRow[] = [];
  if (hours > 0)
    rows.push({ when: m.event_refund_grace({ hours, days }), kept: m.event_refund_none() });
  bands.forEach((band, index) => {
    const from = bands[index - 1]?.daysBeforeMin;
    if (band.freeDays) {
      const when = m.event_refund_free({ count: band.freeDays, days: band.daysBeforeMin });
      rows.push({ when, kept: m.event_refund_none() });
    }
    rows.push({ when: period(band, from), kept: kept(band) });
  });
  return rows;
}

/** `from`: how many days before the event the band before it ends. */
function period(band: Band, from: number | undefined): string {
  const last = band.daysBeforeMin;
  if (from === undefined)
    return last === 0 ? m.event_refund_always() : m.event_refund_before({ days: last });
  const first = from - 1;
  if (first === 0) return m.event_refund_day();
  if (last === 0) return m.event_refund_to_day({ first });
  return first === last
    ? m.event_refund_on({ days: last })
    : m.event_refund_between({ first, last });
}

function kept({ percent, ticketFeeMax }: Band): string {
  if (percent === 0 || ticketFeeMax === 0) return m.event_refund_none();
  return typeof ticketFeeMax === 'number'
    ? m.event_refund_capped({ percent, amount: won(ticketFeeMax) })
    : m.event_refund_percent({ percent });
}
