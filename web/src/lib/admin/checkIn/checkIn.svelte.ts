/**
 * Check-in at one door with one phone. The server decides while it answers in time; otherwise the
 * phone decides by what it knows, keeps the scan, and reports it later.
 */
import { api, call } from '$lib/api/client';
import { ApiFailure } from '$lib/api/failure';
import { clock } from '$lib/time/clock.svelte';
import { type Direction, isoTime, judge, type ListedTicket, type Outcome, UNDO_MS } from './judge';
import { isSigned, readCode, readNumber } from './payload';
import { signal } from './signal';
import { CheckInStore, type StoredEvent, type StoredScan } from './store';

/** A visitor waits: after this the phone decides by itself. */
const ANSWER_MS = 3_000;
const REPORT_EVERY_MS = 10_000;
const LIST_EVERY_MS = 120_000;
const SCANS_PER_REPORT = 200;
const SCANS_SHOWN = 30;

/** Refusals of the server that are an outcome. */
const OUTCOMES: Record<string, Outcome> = {
  ALREADY_CHECKED_IN: 'duplicate',
  VISITOR_NOT_INSIDE: 'not_inside',
  REENTRY_NOT_ALLOWED: 'reentry_not_allowed',
  TICKET_CANCELLED: 'cancelled',
  TICKET_REISSUED: 'reissued',
  TICKET_NOT_FOUND: 'unknown',
  TICKET_FOR_OTHER_EVENT: 'wrong_event',
  TICKET_FORGED: 'forged',
  INVALID_TICKET: 'invalid',
  SCAN_ID_REUSED: 'scan_id_reused',
};

interface ShownCode {
  readonly payload: string;
  readonly ticketId: string | null;
  readonly number: string | null;
  readonly issue: number | null;
}

export class CheckIn {
  /** Whether the server has answered the last time. */
  isOnline = $state(true);
  isReady = $state(false);
  isListing = $state(false);
  event = $state.raw<StoredEvent>(empty(''));
  /** All scans of this phone, the oldest first. */
  scans = $state.raw<readonly StoredScan[]>([]);
  /** The scan that is shown large. */
  shown = $state.raw<StoredScan | null>(null);
  direction = $state<Direction>('entry');
  door = $state('');
  /** Why this user may not check tickets in here. */
  refusal = $state.raw<ApiFailure | null>(null);

  readonly queued = $derived(this.scans.filter((scan) => scan.isQueued && !scan.isUndone));
  readonly recent = $derived(this.scans.slice(-SCANS_SHOWN).reverse());
  /** What the server knows, and what it does not know yet. */
  readonly checkedIn = $derived.by(() => {
    const waiting = this.queued.filter((scan) => scan.direction === 'entry');
    return (this.event.counts?.checkedIn ?? 0) + waiting.length;
  });

  #store: CheckInStore | null = null;
  #isReporting = false;
  #stops: (() => void)[] = [];

  constructor(private readonly eventId: string) {
    this.event = empty(eventId);
  }

  async start(): Promise<void> {
    this.#stops.push(clock.use());
    this.#store = await CheckInStore.open();
    this.event = (await this.#store.event(this.eventId)) ?? empty(this.eventId);
    this.scans = await this.#store.scans(this.eventId, clock.now());
    this.isReady = true;
    const onOnline = () => void this.synchronise();
    window.addEventListener('online', onOnline);
    const reports = setInterval(() => void this.report(), REPORT_EVERY_MS);
    const lists = setInterval(() => void this.refreshList(), LIST_EVERY_MS);
    this.#stops.push(() => {
      window.removeEventListener('online', onOnline);
      clearInterval(reports);
      clearInterval(lists);
    });
    await this.synchronise();
  }

  stop(): void {
    this.#stops.forEach((stop) => stop());
    this.#store?.close();
  }

  async synchronise(): Promise<void> {
    await this.report();
    await this.refreshList();
  }

  /** A code that the camera saw, or a number that was typed. */
  async scan(text: string): Promise<void> {
    const code = readCode(text);
    const number = readNumber(text);
    const shownCode: ShownCode = {
      payload: text,
      ticketId: code?.ticket.ticketId ?? null,
      number,
      issue: code?.ticket.issue ?? null,
    };
    if (!code && !number) return this.#show(this.#scanOf(shownCode, 'invalid'));
    if (code && code.ticket.eventId !== this.eventId)
      return this.#show(this.#scanOf(shownCode, 'wrong_event'));
    const keys = this.event.publicKeys;
    if (code && keys.length > 0 && !(await isSigned(code, keys)))
      return this.#show(this.#scanOf(shownCode, 'forged'));
    const scan = this.#scanOf(shownCode, 'accepted');
    await this.#show((await this.#askServer(scan)) ?? (await this.#decide(scan, shownCode)));
  }

  /** Whether a scan can be undone now. */
  canUndo(scan: StoredScan): boolean {
    return scan.outcome === 'accepted' && !scan.isUndone && clock.nowMs <= scan.scannedAt + UNDO_MS;
  }

  /** Throws `ApiFailure` if the server refuses it or does not answer. */
  async undo(scan: StoredScan): Promise<void> {
    if (scan.ticketId) {
      const asked = this.#undoOnServer(scan.ticketId, scan.scanId);
      // The server may know of a queued scan too: its answer came too late.
      await (scan.isQueued ? asked.catch(() => undefined) : asked);
    }
    await this.#keep({ ...scan, isUndone: true, isQueued: false });
    if (this.shown?.scanId === scan.scanId) this.shown = null;
  }

  async #undoOnServer(ticketId: string, scanId: string): Promise<void> {
    const init = { params: { path: { ticketId } }, body: { scanId } };
    const counts = await inTime(call(api.POST('/api/admin/check-ins/{ticketId}/undo', init)));
    this.event = { ...this.event, counts };
  }

  /** Null if there was no answer in time. */
  async #askServer(scan: StoredScan): Promise<StoredScan | null> {
    const { payload, scanId, direction, door } = scan;
    const body = { eventId: this.eventId, payload, scanId, direction, door };
    try {
      const { ticket } = await inTime(call(api.POST('/api/admin/check-ins', { body })));
      this.#answered();
      const counts = this.event.counts;
      if (counts && direction === 'entry')
        this.event = { ...this.event, counts: { ...counts, checkedIn: counts.checkedIn + 1 } };
      return {
        ...scan,
        ticketId: ticket.id,
        number: ticket.number,
        place: ticket.seat?.label ?? ticket.ticketTypeName ?? '',
        scannedAt: Date.parse(ticket.checkedInAt),
      };
    } catch (error) {
      const failure = ApiFailure.from(error);
      const outcome = OUTCOMES[failure.code];
      if (!outcome) {
        if (failure.status === 403) this.refusal = failure;
        this.isOnline = false;
        return null;
      }
      this.#answered();
      const { checkedInAt, door: earlierDoor } = failure.fields;
      const earlier = { door: text(earlierDoor) ?? '', at: text(checkedInAt) };
      return this.#withTicket({
        ...scan,
        outcome,
        earlier: outcome === 'duplicate' ? earlier : null,
      });
    }
  }

  /** Decides without the server, and keeps an accepted scan for the report. */
  async #decide(scan: StoredScan, code: ShownCode): Promise<StoredScan> {
    if (this.event.publicKeys.length === 0 && code.number === null)
      return { ...scan, outcome: 'unchecked' };
    const ticket = await this.#listed(code);
    const since = this.event.listedAt ?? 0;
    const ticketId = ticket?.id ?? code.ticketId;
    const own = this.scans.filter(
      (one) =>
        one.ticketId === ticketId &&
        one.outcome === 'accepted' &&
        !one.isUndone &&
        (one.isQueued || one.scannedAt >= since),
    );
    const known = { ticket, issue: code.issue, own, allowsReentry: this.event.allowsReentry };
    const judged = judge(known, scan.direction);
    return this.#withTicket({
      ...scan,
      ...judged,
      ticketId,
      isQueued: judged.outcome === 'accepted',
    });
  }

  async #withTicket(scan: StoredScan): Promise<StoredScan> {
    const ticket = await this.#listed(scan);
    if (!ticket) return scan;
    return {
      ...scan,
      ticketId: ticket.id,
      number: ticket.number,
      place: ticket.seatLabel ?? ticket.ticketTypeName ?? '',
      initials: ticket.holderInitials ?? '',
    };
  }

  async #listed(code: {
    readonly ticketId: string | null;
    readonly number: string | null;
  }): Promise<ListedTicket | undefined> {
    if (code.ticketId) return this.#store?.ticket(this.eventId, code.ticketId);
    return code.number ? this.#store?.ticketByNumber(this.eventId, code.number) : undefined;
  }

  #scanOf(code: ShownCode, outcome: Outcome): StoredScan {
    return {
      scanId: crypto.randomUUID(),
      eventId: this.eventId,
      ticketId: code.ticketId,
      payload: code.payload,
      number: code.number ?? '',
      place: '',
      initials: '',
      direction: this.direction,
      door: this.door,
      scannedAt: clock.now(),
      outcome,
      isQueued: false,
      isUndone: false,
      earlier: null,
    };
  }

  async #show(scan: StoredScan): Promise<void> {
    // Kept before it is shown: the visitor goes in when the phone says so.
    await this.#keep(scan);
    this.shown = scan;
    signal(scan.outcome === 'accepted');
  }

  async #keep(scan: StoredScan): Promise<void> {
    await this.#store?.saveScan(scan);
    const others = this.scans.filter((one) => one.scanId !== scan.scanId);
    this.scans = [...others, scan].sort((a, b) => a.scannedAt - b.scannedAt);
  }

  #answered(): void {
    if (!this.isOnline) void this.report();
    this.isOnline = true;
  }

  /** Tells the server what the phone did alone, and asks how many are in. */
  async report(): Promise<void> {
    if (this.#isReporting || !this.#store) return;
    this.#isReporting = true;
    try {
      while (this.queued.length > 0) await this.#reportSome(this.queued.slice(0, SCANS_PER_REPORT));
      const query = { eventId: this.eventId };
      const counts = await inTime(call(api.GET('/api/admin/check-ins', { params: { query } })));
      this.event = { ...this.event, counts };
      this.isOnline = true;
      this.refusal = null;
    } catch (error) {
      const failure = ApiFailure.from(error);
      if ([401, 403, 404].includes(failure.status)) this.refusal = failure;
      else this.isOnline = false;
    } finally {
      this.#isReporting = false;
    }
  }

  async #reportSome(scans: readonly StoredScan[]): Promise<void> {
    const sentAt = isoTime(clock.now());
    const body = {
      eventId: this.eventId,
      sentAt,
      scans: scans.map(({ scanId, payload, direction, door, scannedAt }) => ({
        scanId,
        payload,
        direction,
        door,
        scannedAt: isoTime(scannedAt),
      })),
    };
    const { results } = await call(api.POST('/api/admin/check-ins/batch', { body }));
    for (const result of results) {
      const scan = this.scans.find((one) => one.scanId === result.scanId);
      if (!scan) continue;
      const other = result.otherEntry;
      await this.#keep({
        ...scan,
        isQueued: false,
        outcome: result.outcome as Outcome,
        earlier: other ? { door: other.door, at: other.at } : null,
      });
    }
  }

  /** Reads the list of tickets; pages that have not changed are not sent again. */
  async refreshList(): Promise<void> {
    if (this.isListing || !this.#store || this.refusal) return;
    this.isListing = true;
    try {
      const { keys } = await call(api.GET('/api/tickets/keys'));
      const publicKeys = keys.map((key) => key.publicKey);
      const listedAt = clock.now();
      const pages: Record<string, { tag: string; next: string | null }> = {};
      let allowsReentry = this.event.allowsReentry;
      let after: string | null = null;
      do {
        const page = await this.#readPage(after);
        pages[after ?? ''] = { tag: page.tag, next: page.next };
        allowsReentry = page.allowsReentry ?? allowsReentry;
        after = page.next;
      } while (after);
      this.event = { ...this.event, publicKeys, pages, allowsReentry, listedAt };
      await this.#store.saveEvent($state.snapshot(this.event) as StoredEvent);
      this.isOnline = true;
    } catch (error) {
      const failure = ApiFailure.from(error);
      if ([401, 403, 404].includes(failure.status)) this.refusal = failure;
    } finally {
      this.isListing = false;
    }
  }

  async #readPage(after: string | null) {
    const before = this.event.pages[after ?? ''];
    const path = { eventId: this.eventId };
    const query = after ? { after } : {};
    const headers = before ? { 'if-none-match': before.tag } : {};
    const answer = await api.GET('/api/admin/events/{eventId}/check-in-list', {
      params: { path, query },
      headers,
    });
    if (answer.response.status === 304 && before) return { ...before, allowsReentry: undefined };
    const page = await call(Promise.resolve(answer));
    await this.#store?.saveTickets(this.eventId, page.tickets);
    const tag = answer.response.headers.get('etag') ?? '';
    return { tag, next: page.next ?? null, allowsReentry: page.allowsReentry };
  }
}

function empty(eventId: string): StoredEvent {
  return {
    eventId,
    allowsReentry: false,
    listedAt: null,
    pages: {},
    publicKeys: [],
    counts: null,
  };
}

/** Renewing a session may also wait for a dead network, so the whole call is timed. */
function inTime<T>(work: Promise<T>): Promise<T> {
  const late = new Promise<never>((_, reject) =>
    setTimeout(() => reject(ApiFailure.network()), ANSWER_MS),
  );
  return Promise.race([work, late]);
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
