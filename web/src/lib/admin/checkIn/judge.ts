/**
 * What a phone without a network decides. It knows the list of tickets as it was, and what it did
 * itself since. The server judges again when the scans are reported.
 */
export type Direction = 'entry' | 'exit';

export type Outcome =
  | 'accepted'
  | 'duplicate'
  | 'not_inside'
  | 'reentry_not_allowed'
  | 'cancelled'
  | 'reissued'
  | 'unknown'
  | 'wrong_event'
  | 'forged'
  | 'scan_id_reused'
  | 'invalid'
  | 'unchecked';

export interface ListedTicket {
  readonly id: string;
  readonly number: string;
  readonly issue: number;
  readonly seatLabel?: string | null;
  readonly ticketTypeName?: string | null;
  readonly status: string;
  readonly checkedInAt?: string | null;
  readonly door?: string | null;
  readonly holderInitials?: string | null;
}

/** A scan that this phone has accepted. */
export interface OwnScan {
  readonly direction: Direction;
  readonly door: string;
  /** Milliseconds of the server's time. */
  readonly scannedAt: number;
}

export interface Earlier {
  readonly door: string;
  readonly at: string | null;
}

export interface Judgement {
  readonly outcome: Outcome;
  /** The entry by which the visitor is inside. */
  readonly earlier: Earlier | null;
}

export interface Known {
  /** Undefined: it is not on the list; it may have been sold since. */
  readonly ticket: ListedTicket | undefined;
  /** The issue that the code says; null if the number was typed. */
  readonly issue: number | null;
  /** Own scans of this ticket since the list was read, in their order. */
  readonly own: readonly OwnScan[];
  readonly allowsReentry: boolean;
}

export function judge(known: Known, direction: Direction): Judgement {
  const { ticket, issue, own, allowsReentry } = known;
  if (!ticket && issue === null) return { outcome: 'unknown', earlier: null };
  if (ticket && issue !== null && issue < ticket.issue)
    return { outcome: 'reissued', earlier: null };
  if (ticket?.status === 'cancelled') return { outcome: 'cancelled', earlier: null };
  if (direction === 'exit' && !allowsReentry)
    return { outcome: 'reentry_not_allowed', earlier: null };
  const last = own.at(-1);
  const isInside = last ? last.direction === 'entry' : ticket?.status === 'inside';
  if (direction === 'exit') return { outcome: isInside ? 'accepted' : 'not_inside', earlier: null };
  // Without re-entry a ticket that was used once admits nobody, wherever its visitor is.
  const wasUsed = !allowsReentry && ticket?.status === 'outside';
  if (!isInside && !wasUsed) return { outcome: 'accepted', earlier: null };
  const earlier = last
    ? { door: last.door, at: isoTime(last.scannedAt) }
    : { door: ticket?.door ?? '', at: ticket?.checkedInAt ?? null };
  return { outcome: 'duplicate', earlier };
}

/** A scan can be undone for this long. */
export const UNDO_MS = 60_000;

/** A time as the server writes it. */
export function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
