/** What an organiser does so that a test has a small sale of its own: through the API. */
import { type APIRequestContext, expect, request } from '@playwright/test';
import { SAME_ORIGIN } from './fan';
import type { RunningProgram } from './program';

let serial = 0;
/** A name that no other test uses. */
export function unique(name: string): string {
  serial += 1;
  return `${name} ${process.pid}-${Date.now().toString(36)}-${serial}`;
}

export interface SaleOptions {
  readonly title?: string;
  /** Rows and seats per row of a hall; without it the event is standing. */
  readonly grid?: { readonly rows: number; readonly seatsPerRow: number };
  /** A hall that exists, and what its grades cost. */
  readonly hall?: { readonly id: string; readonly prices: Record<string, number> };
  /** Tickets of a standing event. */
  readonly tickets?: number;
  readonly artistId?: string;
  /** Further fields of the event, such as `requiresIdentity`. */
  readonly event?: object;
  /** The sale opens in this time; without it, it is open. */
  readonly opensInSeconds?: number;
  /** How many users may book at once. */
  readonly threshold?: number;
  /** Opens by lottery: so many seconds to gather, so many until the sale. */
  readonly lottery?: { readonly gatherSeconds: number; readonly opensInSeconds: number };
}

export class Organiser {
  private constructor(private readonly api: APIRequestContext) {}

  static async logIn(program?: Pick<RunningProgram, 'url' | 'admin'>): Promise<Organiser> {
    const admin = program?.admin ?? JSON.parse(process.env.URR_TEST_ADMIN ?? 'null');
    expect(admin, 'a program that runs already needs URR_TEST_ADMIN').toBeTruthy();
    const api = await request.newContext({
      baseURL: program?.url ?? process.env.URR_URL ?? '',
      extraHTTPHeaders: SAME_ORIGIN,
    });
    await answer(api.post('/api/auth/login', { data: admin }));
    return new Organiser(api);
  }

  async dispose(): Promise<void> {
    await this.api.dispose();
  }

  /** Creates an event and waits until it can be booked, or, for a lottery, joined. */
  async createSale(options: SaleOptions = {}): Promise<string> {
    const opensIn = options.lottery ? 7_200 : (options.opensInSeconds ?? -60);
    const opensAt = Date.now() + opensIn * 1_000;
    const { event } = await answer(
      this.api.post('/api/admin/events', {
        data: {
          title: options.title ?? unique('작은 공연'),
          ...(options.artistId && { artistId: options.artistId }),
          ...(await this.place(options)),
          saleStartsAt: new Date(opensAt).toISOString(),
          saleEndsAt: new Date(Date.now() + 30 * 86_400_000).toISOString(),
          startsAt: new Date(Date.now() + 40 * 86_400_000).toISOString(),
          ...options.event,
        },
      }),
    );
    await expect
      .poll(async () => (await this.event(event.id)).inventoryReady, { timeout: 15_000 })
      .toBe(true);
    if (options.threshold) await this.setThreshold(event.id, options.threshold);
    if (options.lottery) await this.makeLottery(event.id, options.lottery);
    else if (!options.opensInSeconds)
      await expect
        .poll(async () => (await this.crowd(event.id))?.phase, { timeout: 15_000 })
        .toBe('open');
    return event.id;
  }

  /** Every process of a cluster learns of it by itself, within a second; they answer in turns. */
  private async setThreshold(id: string, threshold: number): Promise<void> {
    await this.setRoom(id, { threshold });
    let inARow = 0;
    const answers = async () => {
      inARow = (await this.crowd(id))?.threshold === threshold ? inARow + 1 : 0;
      return inARow;
    };
    await expect.poll(answers, { timeout: 15_000, intervals: [50] }).toBeGreaterThanOrEqual(6);
  }

  private async place({ grid, hall, tickets = 100 }: SaleOptions): Promise<object> {
    if (hall) return { hallId: hall.id, prices: hall.prices };
    const venue = await this.createVenue();
    if (!grid)
      return {
        venueId: venue.id,
        ticketTypes: [{ name: '스탠딩', price: 55_000, total: tickets }],
      };
    const gradeMapping = [{ grade: 'R', fromRow: 1, toRow: grid.rows }];
    const created = await this.createHall(venue.id, { grid: { ...grid, gradeMapping } });
    return { hallId: created.id, prices: { R: 88_000 } };
  }

  async createVenue(): Promise<{ id: string; name: string }> {
    const data = { name: unique('작은 극장'), address: '서울특별시 마포구 1' };
    return (await answer(this.api.post('/api/admin/venues', { data }))).venue;
  }

  /** The seats are a `grid` or a `layout`. */
  async createHall(venueId: string, seats: object, name = '본관') {
    const path = `/api/admin/venues/${venueId}/halls`;
    return (await answer(this.api.post(path, { data: { name, ...seats } }))).hall;
  }

  async hall(id: string) {
    return (await answer(this.api.get(`/api/admin/halls/${id}`))).hall;
  }

  async changeHall(id: string, data: object): Promise<void> {
    await answer(this.api.put(`/api/admin/halls/${id}`, { data }));
  }

  async changeEvent(id: string, change: object): Promise<void> {
    const { event } = await answer(this.api.get(`/api/admin/events/${id}`));
    const data = { revision: event.revision, ...change };
    await answer(this.api.put(`/api/admin/events/${id}`, { data }));
  }

  /** An event becomes a lottery before anybody may join; then its sale is brought nearer. */
  private async makeLottery(id: string, lottery: NonNullable<SaleOptions['lottery']>) {
    const { gatherSeconds, opensInSeconds } = lottery;
    await this.setRoom(id, { opening: 'lottery', gatheringSeconds: gatherSeconds });
    const saleStartsAt = new Date(Date.now() + opensInSeconds * 1_000).toISOString();
    await this.changeEvent(id, { saleStartsAt });
    await expect
      .poll(async () => (await this.crowd(id))?.drawCommitment, { timeout: 15_000 })
      .toMatch(/^[0-9a-f]{64}$/);
  }

  async setRoom(id: string, settings: object): Promise<void> {
    await expect(async () => {
      await answer(this.api.patch(`/api/admin/queue/${id}`, { data: settings }));
    }).toPass({ timeout: 15_000 });
  }

  async createArtist(): Promise<{ id: string; name: string; membershipPrice: number }> {
    const data = { name: unique('작은 밴드'), membershipPrice: 12_000 };
    return (await answer(this.api.post('/api/admin/artists', { data }))).artist;
  }

  /** Scans a QR code at the entrance; returns the code of a refusal, or `ok`. */
  async checkIn(eventId: string, payload: string): Promise<string> {
    const scanned = await this.api.post('/api/admin/check-ins', { data: { eventId, payload } });
    return scanned.ok() ? 'ok' : (await scanned.json()).code;
  }

  /** Makes somebody a member of the door staff of these events. */
  async hireStaff(userId: string, ...eventIds: string[]): Promise<void> {
    const role = { data: { role: 'staff' } };
    await answer(this.api.put(`/api/auth/admin/users/${userId}/role`, role));
    for (const eventId of eventIds) {
      const assigned = await this.api.put(`/api/admin/events/${eventId}/staff/${userId}`);
      expect(assigned.status(), await assigned.text()).toBe(204);
    }
  }

  /** How many tickets were checked in, and what was wrong. */
  async countCheckIns(eventId: string): Promise<{ checkedIn: number; conflicts: number }> {
    return answer(this.api.get(`/api/admin/check-ins?eventId=${eventId}`));
  }

  private async event(id: string) {
    return (await answer(this.api.get(`/api/events/${id}`))).event;
  }

  private async crowd(id: string) {
    const response = await this.api.get(`/api/queue/crowd/${id}`);
    // A new event has no document yet: 204.
    return response.status() === 200 ? response.json() : null;
  }
}

/** The body of an answer; a refusal fails the test with what the server said. */
async function answer(sent: Promise<import('@playwright/test').APIResponse>) {
  const response = await sent;
  expect(response.ok(), `${response.url()}: ${response.status()} ${await response.text()}`).toBe(
    true,
  );
  return response.json();
}
