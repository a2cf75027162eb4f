/** Unsaved work, kept by the browser: a draft per hall, written a moment after each change. */
import type { LayoutView } from '$lib/seatmap/hall';

export interface HallDraft {
  readonly savedAt: number;
  /** Which revision of the hall was edited; null for a new hall. */
  readonly revision: number | null;
  readonly name: string;
  readonly description: string;
  readonly layout: LayoutView;
}

const DATABASE = 'urr-halls';
const STORE = 'drafts';

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function run<T>(
  mode: IDBTransactionMode,
  work: (store: IDBObjectStore) => IDBRequest<T>,
): Promise<T | undefined> {
  let database: IDBDatabase;
  try {
    database = await open();
  } catch {
    // A browser without storage edits without drafts.
    return undefined;
  }
  try {
    return await new Promise<T>((resolve, reject) => {
      const request = work(database.transaction(STORE, mode).objectStore(STORE));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } catch {
    return undefined;
  } finally {
    database.close();
  }
}

export async function loadDraft(key: string): Promise<HallDraft | null> {
  return ((await run('readonly', (store) => store.get(key))) as HallDraft | undefined) ?? null;
}

/** True if it was written. */
export async function saveDraft(key: string, draft: HallDraft): Promise<boolean> {
  return (await run('readwrite', (store) => store.put(draft, key))) !== undefined;
}

export async function forgetDraft(key: string): Promise<void> {
  await run('readwrite', (store) => store.delete(key));
}
