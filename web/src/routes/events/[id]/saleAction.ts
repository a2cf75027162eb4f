/** Which action an event's page offers. The server decides everything again when it is used. */
import type { Schemas } from '$lib/api/client';
import * as m from '$lib/text/messages';

export type SaleAction =
  | { readonly kind: 'wait'; readonly until: string }
  | { readonly kind: 'enter'; readonly label: string; readonly phase: 'gathering' | 'open' }
  | { readonly kind: 'sold-out' }
  | { readonly kind: 'none'; readonly text: string; readonly hasTransfers: boolean };

type EventState = Pick<
  Schemas['EventView'],
  'status' | 'inventoryReady' | 'saleStartsAt' | 'preSaleSchedule'
>;
type Crowd = Pick<Schemas['CrowdView'], 'phase' | 'soldOut' | 'waiting' | 'opensAt'>;

export function saleAction(event: EventState, crowd: Crowd | undefined): SaleAction {
  if (event.status === 'cancelled') return none(m.event_action_cancelled());
  if (event.status === 'ended' || crowd?.phase === 'over')
    return none(m.event_action_ended(), true);
  if (crowd?.soldOut) return { kind: 'sold-out' };
  if (!event.inventoryReady) return none(m.event_action_preparing());
  if (crowd?.phase === 'gathering' || crowd?.phase === 'drawing')
    return { kind: 'enter', label: m.event_action_gather(), phase: 'gathering' };
  const isOpen = crowd
    ? crowd.phase === 'open' || crowd.phase === 'paused'
    : event.status === 'on_sale';
  if (isOpen) {
    const isLine = (crowd?.waiting ?? 0) > 0 || crowd?.phase === 'paused';
    const label = isLine ? m.event_action_queue() : m.event_action_book();
    return { kind: 'enter', label, phase: 'open' };
  }
  return { kind: 'wait', until: crowd?.opensAt ?? firstOpening(event) };
}

function none(text: string, hasTransfers = false): SaleAction {
  return { kind: 'none', text, hasTransfers };
}

/** Members of the highest tier begin first. */
function firstOpening(event: EventState): string {
  return event.preSaleSchedule?.diamond ?? event.saleStartsAt;
}
