/** What a phone keeps for the time without a network: keys, the list of tickets, its own scans. */
import type { Direction, ListedTicket, Outcome } from './judge';

/** The session deletes this one when the user logs out. */
const LIST = 'urr-check-in-list';
/** Scans that the server does not know must outlast a logout. */
const SCANS = 'urr-check-in-scans';
const VERSION = 1;
/** Own scans are kept this long after they were reported. */
const SCANS_KEPT_MS = 36 * 3_600_000;

/** A scan of this phone. */
export interface StoredScan {
  readonly scanId: string;
  readonly eventId: string;
  readonly ticketId: string | null;
  /** The text of the code, or the number. */
  readonly payload: string;
  readonly direction: Direction;
  readonly door: string;
  readonly place: string;
  readonly number: string;
  readonly initials: string;
  /** Milliseconds of the server's time. */
  readonly scannedAt: number;
  readonly outcome: Outcome;
  /** Whether the server does not know of it yet. */
  readonly isQueued: boolean;
  readonly isUndone: boolean;
  /** Where and when the ticket was shown before, or has been at another door. */
  readonly earlier: { readonly door: string; readonly at: string | null } | null;
}

/** What is known of an event. */
export interface StoredEvent {
  readonly eventId: string;
  readonly allowsReentry: boolean;
  /** When the list was last complete, in the server's time; null: never. */
  readonly listedAt: number | null;
  /** The entity tags of its pages by `after`, and where the next one begins. */
  readonly pages: Readonly<Record<string, { readonly tag: string; readonly next: string | null }>>;
  readonly publicKeys: readonly string[];
  readonly counts: { readonly tickets: number; readonly checkedIn: number } | null;
}

interface StoredTicket extends ListedTicket {
  readonly eventId: string;
}

export class CheckInStore {
  private constructor(
    private readonly list: IDBDatabase,
    private readonly own: IDBDatabase,
  ) {}

  static async open(): Promise<CheckInStore> {
    const list = openDatabase(LIST, (db) => {
      db.createObjectStore('events', { keyPath: 'eventId' });
      const tickets = db.createObjectStore('tickets', { keyPath: ['eventId', 'id'] });
      tickets.createIndex('number', ['eventId', 'number']);
    });
    const own = openDatabase(SCANS, (db) => {
      const scans = db.createObjectStore('scans', { keyPath: 'scanId' });
      scans.createIndex('event', ['eventId', 'scannedAt']);
    });
    return new CheckInStore(await list, await own);
  }

  close(): void {
    this.list.close();
    this.own.close();
  }

  async event(eventId: string): Promise<StoredEvent | undefined> {
    return answer(this.read('events').get(eventId));
  }

  async saveEvent(event: StoredEvent): Promise<void> {
    await answer(this.write('events').put(event));
  }

  async ticket(eventId: string, id: string): Promise<ListedTicket | undefined> {
    return answer(this.read('tickets').get([eventId, id]));
  }

  async ticketByNumber(eventId: string, number: string): Promise<ListedTicket | undefined> {
    return answer(this.read('tickets').index('number').get([eventId, number]));
  }

  async saveTickets(eventId: string, tickets: readonly ListedTicket[]): Promise<void> {
    const transaction = this.list.transaction('tickets', 'readwrite');
    const store = transaction.objectStore('tickets');
    for (const ticket of tickets) store.put({ ...ticket, eventId } satisfies StoredTicket);
    await new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
  }

  async saveScan(scan: StoredScan): Promise<void> {
    await answer(this.write('scans').put(scan));
  }

  /** The scans of an event, the oldest first. Those of long ago are forgotten. */
  async scans(eventId: string, now: number): Promise<StoredScan[]> {
    const range = IDBKeyRange.bound([eventId, 0], [eventId, Number.MAX_SAFE_INTEGER]);
    const all = await answer<StoredScan[]>(this.read('scans').index('event').getAll(range));
    const old = all.filter((scan) => !scan.isQueued && scan.scannedAt < now - SCANS_KEPT_MS);
    for (const scan of old) await answer(this.write('scans').delete(scan.scanId));
    return all.filter((scan) => !old.includes(scan));
  }

  private read(name: string): IDBObjectStore {
    return this.#of(name).transaction(name, 'readonly').objectStore(name);
  }

  private write(name: string): IDBObjectStore {
    return this.#of(name).transaction(name, 'readwrite').objectStore(name);
  }

  #of(name: string): IDBDatabase {
    return name === 'scans' ? this.own : this.list;
  }
}

async function openDatabase(name: string, create: (db: IDBDatabase) => void): Promise<IDBDatabase> {
  const request = indexedDB.open(name, VERSION);
  request.onupgradeneeded = () => create(request.result);
  const db = await answer(request);
  // Somebody logs out: the list goes, whoever still shows it.
  db.onversionchange = () => db.close();
  return db;
}

function answer<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error('the storage of the phone failed'));
  });
}
