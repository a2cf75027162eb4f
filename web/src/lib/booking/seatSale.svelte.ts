/** Choosing and holding numbered seats of one event, with live changes. */
import { Action } from '$lib/api/action.svelte';
import { api, call, type Schemas } from '$lib/api/client';
import { ApiFailure } from '$lib/api/failure';
import { gradeOf, type Hall, makeHall, seatName } from '$lib/seatmap/hall';
import { followSeats } from '$lib/seatmap/live';
import { AVAILABLE, type SeatChange, SeatStatuses } from '$lib/seatmap/statuses';
import { seatLabel } from '$lib/seatmap/words';
import { clock } from '$lib/time/clock.svelte';
import * as m from '$lib/text/messages';
import { keepChoice, keptChoice } from './choice';
import type { Entry } from './entry.svelte';
import { closedGrades, type Gate, gateLimit, readGates } from './gates';
import { WishKey } from './idempotency';

type SeatMapView = Schemas['SeatMapView'];
type Hold = Schemas['HoldView'] | Schemas['ReservationView'];

export interface Wish {
  readonly count: number;
  readonly grade: string;
  readonly isAccessible: boolean;
}

const DECIDED_ATTEMPTS = 4;
/** The server frees the seats of an ended hold within seconds; until then they look held. */
const FREED_WITHIN_MS = 15_000;
/** Seats that others take are told together, not one by one. */
const TELL_EVERY_MS = 15_000;
/** While seats are kept for others, it is asked again so often whether they still are. */
const GATES_EVERY_MS = 10_000;

export class SeatSale {
  readonly eventId: string;
  readonly hall: Hall;
  readonly statuses: SeatStatuses;
  readonly prices: Readonly<Record<string, number>>;
  readonly limit: number;
  readonly #entry: Entry;
  readonly #wishKey = new WishKey();
  readonly #bestKey = new WishKey();
  /** Grows with every change of the statuses, so that what depends on them is computed again. */
  #changes = $state(0);
  // Replaced as a whole, never changed: the map compares it by identity.
  // eslint-disable-next-line svelte/prefer-svelte-reactivity
  chosen = $state.raw<ReadonlySet<number>>(new Set());
  /** What is held already: it can be paid, changed or given up. */
  hold = $state.raw<Hold | null>(null);
  /** A hold that the user forgot about, in the way of a new one. */
  conflict = $state.raw<Hold | null>(null);
  failure = $state.raw<ApiFailure | null>(null);
  /** What happened to the choice without the user's doing. */
  notice = $state('');
  /** For screen readers. */
  news = $state.raw({ text: '' });
  readonly #action = new Action();
  isLive = $state(true);
  /** What is kept for fans who asked before. */
  gates = $state.raw<readonly Gate[]>([]);
  onstatuses: (taken: readonly number[]) => void = () => {};
  #untold = 0;
  #toldAt = 0;
  /** Seats of the user's own hold that has ended, while the map still shows them as held. */
  #ended: readonly number[] = [];

  constructor(eventId: string, map: SeatMapView, limit: number, entry: Entry) {
    if (!map.layout) throw new Error('the first answer has the layout');
    this.eventId = eventId;
    this.hall = makeHall(map.layout);
    this.prices = (map.prices ?? {}) as Record<string, number>;
    this.statuses = new SeatStatuses(this.hall);
    this.statuses.apply(map);
    this.limit = limit;
    this.#entry = entry;
  }

  get isBusy(): boolean {
    return this.#action.isBusy;
  }

  /** Follows the changes of others until the returned function is called. */
  follow(): () => void {
    const end = new AbortController();
    const address = `/api/seats/events/${this.eventId}`;
    const path = { eventId: this.eventId };
    void followSeats(
      {
        version: () => this.statuses.version,
        take: (map) => this.#take(map),
        connected: (isConnected) => (this.isLive = isConnected),
        openStream: async (since, signal) => {
          const headers = this.#entry.headers;
          const response = await fetch(`${address}/stream?since=${since}`, { headers, signal });
          if (!response.ok || !response.body) throw new ApiFailure(response.status, {});
          return response.body;
        },
        ask: (since, signal) =>
          this.#entry.send((headers) =>
            call(
              api.GET('/api/seats/events/{eventId}', {
                params: { path, query: { since, layout: false } },
                headers,
                signal,
              }),
            ),
          ),
      },
      end.signal,
    );
    void this.loadGates();
    const timer = setInterval(() => {
      if (this.gates.length > 0 && document.visibilityState === 'visible') void this.loadGates();
    }, GATES_EVERY_MS);
    return () => {
      clearInterval(timer);
      end.abort();
    };
  }

  /** Without an answer the seats look free, and the server decides. */
  async loadGates(): Promise<void> {
    try {
      this.gates = await readGates(this.eventId);
    } catch {
      return;
    }
    this.statuses.close(closedGrades(this.gates, this.hall.grades));
    this.#changes += 1;
    this.onstatuses([]);
  }

  /** Seats of this grade are free, and for others. */
  isKept(grade: number): boolean {
    void this.#changes;
    return this.statuses.freeInGrade(grade) < this.statuses.returnedInGrade(grade);
  }

  /** Nobody has it, but it is kept for others. */
  isClosed(seat: number): boolean {
    void this.#changes;
    return this.statuses.isClosed(seat);
  }

  price(seat: number): number {
    return this.prices[this.hall.grades[gradeOf(this.hall, seat)] ?? ''] ?? 0;
  }

  /** Free for this user: nobody has it, or it is part of the user's own hold, also an ended one. */
  isFree(seat: number): boolean {
    void this.#changes;
    return this.statuses.isFree(seat) || this.#isMine(seat) || this.#ended.includes(seat);
  }

  freeInGrade(grade: number): number {
    void this.#changes;
    return this.statuses.freeInGrade(grade);
  }

  freeInSection(section: number): number {
    void this.#changes;
    return this.statuses.freeInSection(section);
  }

  get chosenSeats(): number[] {
    return [...this.chosen].sort((a, b) => a - b);
  }

  get sum(): number {
    return this.chosenSeats.reduce((sum, seat) => sum + this.price(seat), 0);
  }

  /** Whether the hold has exactly the chosen seats. */
  get isHeld(): boolean {
    const held = this.hold?.seats ?? [];
    return (
      this.hold !== null &&
      held.length === this.chosen.size &&
      held.every((seat) => this.chosen.has(seat.id))
    );
  }

  toggle(seat: number): void {
    this.notice = '';
    this.failure = null;
    if (this.chosen.has(seat)) {
      this.#choose([...this.chosen].filter((other) => other !== seat));
    } else if (this.isClosed(seat)) {
      this.notice = m.seats_kept_notice();
    } else if (!this.isFree(seat)) {
      this.notice = m.seats_not_free({ seat: seatLabel(seatName(this.hall, seat)) });
    } else if (this.chosen.size >= this.limit) {
      this.notice = m.seats_limit({ count: this.limit });
    } else if (this.chosen.size >= this.#gateLimit([...this.chosen, seat])) {
      this.notice = m.seats_kept_limit({ count: this.chosen.size });
    } else {
      this.#choose([...this.chosen, seat]);
    }
  }

  say(text: string): void {
    this.news = { text };
  }

  /** Brings back what was chosen before a reload, the queue or an expired hold. */
  async restore(): Promise<void> {
    const kept = keptChoice(this.eventId);
    if (kept.reservationId) await this.#restoreHold(kept.reservationId);
    if (this.hold) return;
    const known = kept.seatIds.filter((seat) => seat < this.hall.seatCount);
    const free = known.filter((seat) => this.isFree(seat)).slice(0, this.limit);
    const gone = known.filter((seat) => !this.isFree(seat));
    this.#choose(free);
    if (gone.length > 0) this.notice = m.seats_gone({ seats: this.#labels(gone) });
  }

  async #restoreHold(id: string): Promise<void> {
    try {
      const { reservation } = await call(
        api.GET('/api/reservations/{id}', { params: { path: { id } } }),
      );
      if (reservation.status === 'pending') return this.#setHold(reservation);
      const endedMs = clock.now() - Date.parse(reservation.expiresAt);
      if (reservation.status === 'expired' && endedMs < FREED_WITHIN_MS)
        this.#endSeats(reservation);
      keepChoice(this.eventId, { reservationId: null });
    } catch {
      // It is not this user's, or cannot be asked for now: the seats can be chosen again.
    }
  }

  /** Holds the chosen seats; the id of the reservation, or null if it did not work. */
  async reserve(): Promise<string | null> {
    if (this.hold && this.isHeld) return this.hold.id;
    return this.#busy(async () => {
      if (this.hold) return this.#changeHold(this.hold);
      const body = { eventId: this.eventId, seatIds: this.chosenSeats };
      return this.#hold(this.#wishKey, body, (key) =>
        this.#entry.send((headers) =>
          call(
            api.POST('/api/seats/reserve', {
              body,
              headers: { ...headers, 'idempotency-key': key },
            }),
          ),
        ),
      );
    });
  }

  /** Lets the server choose and hold seats beside each other. */
  async reserveBest(wish: Wish): Promise<boolean> {
    const id = await this.#busy(async () => {
      const body = {
        eventId: this.eventId,
        count: wish.count,
        grade: wish.grade,
        accessible: wish.isAccessible,
      };
      return this.#hold(this.#bestKey, body, (key) =>
        this.#entry.send((headers) =>
          call(
            api.POST('/api/seats/best', { body, headers: { ...headers, 'idempotency-key': key } }),
          ),
        ),
      );
    });
    return id !== null;
  }

  /** Gives up the hold; its seats stay chosen only if asked. */
  async release(): Promise<boolean> {
    const { hold } = this;
    if (!hold) return true;
    const isDone = await this.#busy(async () => {
      await call(api.DELETE('/api/reservations/{id}', { params: { path: { id: hold.id } } }));
      return true;
    });
    if (!isDone) return false;
    this.holdEnded();
    return true;
  }

  /** The hold has run out or was given up: the seats are anybody's. */
  holdEnded(): void {
    if (this.hold) this.#endSeats(this.hold);
    this.hold = null;
    this.#wishKey.decided();
    this.#bestKey.decided();
    keepChoice(this.eventId, { reservationId: null });
  }

  /** Takes over the hold that was in the way, with its own seats. */
  takeConflict(): void {
    if (this.conflict) this.#setHold(this.conflict);
    this.conflict = null;
  }

  /** Replaces the seats of the hold that was in the way by the chosen ones. */
  async replaceConflict(): Promise<string | null> {
    const hold = this.conflict;
    this.conflict = null;
    return hold && this.#busy(() => this.#changeHold(hold));
  }

  #gateLimit(seats: readonly number[]): number {
    if (this.gates.length === 0) return Infinity;
    return gateLimit(
      this.gates,
      seats.map((seat) => this.hall.grades[gradeOf(this.hall, seat)] ?? ''),
    );
  }

  #isMine(seat: number): boolean {
    return this.hold?.seats.some((held) => held.id === seat) ?? false;
  }

  #endSeats(hold: Hold): void {
    this.#ended = hold.seats.map((seat) => seat.id).filter((seat) => !this.statuses.isFree(seat));
    this.#changes += 1;
  }

  #choose(seats: readonly number[]): void {
    // eslint-disable-next-line svelte/prefer-svelte-reactivity
    this.chosen = new Set(seats);
    keepChoice(this.eventId, { seatIds: [...seats] });
  }

  #setHold(hold: Hold): void {
    this.hold = hold;
    this.#choose(hold.seats.map((seat) => seat.id));
    keepChoice(this.eventId, { reservationId: hold.id });
  }

  async #hold(
    wishKey: WishKey,
    wish: unknown,
    request: (key: string) => Promise<Schemas['ReservationAnswer']>,
  ): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      try {
        const { reservation } = await request(wishKey.for(wish));
        this.#setHold(reservation);
        return reservation.id;
      } catch (error) {
        const failure = ApiFailure.from(error);
        if (failure.code === 'SEAT_BEING_DECIDED' && attempt < DECIDED_ATTEMPTS) {
          await new Promise((resolve) => setTimeout(resolve, 700));
          continue;
        }
        // Without an answer it may have been done: the next attempt asks with the same key.
        if (failure.status > 0 && failure.status < 500) wishKey.decided();
        throw failure;
      }
    }
  }

  async #changeHold(hold: Hold): Promise<string> {
    const { reservation } = await this.#entry.send((headers) =>
      call(
        api.PUT('/api/reservations/{id}/seats', {
          params: { path: { id: hold.id } },
          body: { seatIds: this.chosenSeats, fencingToken: hold.fencingToken ?? null },
          headers,
        }),
      ),
    );
    this.#setHold(reservation);
    return reservation.id;
  }

  async #busy<T>(work: () => Promise<T>): Promise<T | null> {
    let done: T | null = null;
    await this.#action.run(async () => {
      this.failure = null;
      this.notice = '';
      done = await work().catch((error) => this.#explain(ApiFailure.from(error)));
    });
    return done;
  }

  async #explain(failure: ApiFailure): Promise<null> {
    if (failure.code === 'SEAT_TAKEN') {
      const taken = (failure.fields.seatIds as number[] | undefined) ?? [];
      this.#choose(this.chosenSeats.filter((seat) => !taken.includes(seat)));
      this.notice = m.seats_gone({ seats: this.#labels(taken) });
    } else if (failure.code === 'HOLD_IN_PROGRESS') {
      const id = String(failure.fields.reservationId);
      const found = await call(
        api.GET('/api/reservations/{id}', { params: { path: { id } } }),
      ).catch(() => null);
      if (found) this.conflict = found.reservation;
      else this.failure = failure;
    } else if (failure.code === 'NOT_ADJACENT') {
      const most = Number(failure.fields.adjacentMax ?? 0);
      this.notice = m.seats_not_adjacent({ count: most });
    } else if (failure.code === 'RESERVATION_EXPIRED') {
      this.holdEnded();
      this.notice = m.seats_hold_over();
    } else {
      this.failure = failure;
      if (failure.code === 'SEATS_OFFERED') await this.loadGates();
    }
    return null;
  }

  #labels(seats: readonly number[]): string {
    return seats.map((seat) => seatLabel(seatName(this.hall, seat))).join(', ');
  }

  #take(map: SeatMapView): void {
    const wasGone = this.hall.grades.map((_, grade) => this.statuses.returnedInGrade(grade) === 0);
    const changes = this.statuses.apply(map);
    if (changes.length === 0) return;
    this.#changes += 1;
    // Only what was sold out can be kept for those who asked for it.
    if (wasGone.some((gone, grade) => gone && this.statuses.returnedInGrade(grade) > 0))
      void this.loadGates();
    // What the server says now is newer than that the hold has ended.
    this.#ended = this.#ended.filter((seat) => !this.statuses.isFree(seat));
    const taken = changes.filter((change) => change.from === AVAILABLE);
    this.#dropLost(taken);
    const others = taken.filter((change) => !this.chosen.has(change.seat));
    this.#tell(others.length);
    this.onstatuses(others.map((change) => change.seat));
  }

  /** Somebody was faster: a chosen seat that is not held is lost. */
  #dropLost(taken: readonly SeatChange[]): void {
    if (this.isBusy) return;
    const lost = taken
      .map((change) => change.seat)
      .filter((seat) => this.chosen.has(seat) && !this.#isMine(seat));
    if (lost.length === 0) return;
    this.#choose(this.chosenSeats.filter((seat) => !lost.includes(seat)));
    this.notice = m.seats_gone({ seats: this.#labels(lost) });
  }

  #tell(count: number): void {
    this.#untold += count;
    const now = Date.now();
    if (this.#untold === 0 || now - this.#toldAt < TELL_EVERY_MS) return;
    this.say(m.seats_news({ count: this.#untold }));
    this.#untold = 0;
    this.#toldAt = now;
  }
}
