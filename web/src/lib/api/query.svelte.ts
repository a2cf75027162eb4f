/**
 * Server state with stale-while-revalidate: a page shows what is known at once and replaces it
 * when the answer comes. Answers live in memory only, shared by all pages.
 */
import { untrack } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';
import { ApiFailure } from './failure';

const ENTRIES_MAX = 100;

interface Entry {
  data?: unknown;
  failure?: ApiFailure | undefined;
  fetchedAt: number;
  pending?: Promise<void> | undefined;
}

const entries = new SvelteMap<string, Entry>();

export interface QueryOptions {
  /** How long an answer is shown without asking again. */
  staleMs?: number;
  /** Asks again when the window gets the focus, if the answer is stale. */
  refetchOnFocus?: boolean;
  /** Asks again this often while the page is visible. */
  everyMs?: number;
}

export interface Query<T> {
  readonly data: T | undefined;
  readonly failure: ApiFailure | undefined;
  /** There is nothing to show yet. */
  readonly isLoading: boolean;
  readonly isRefreshing: boolean;
  refetch(): Promise<void>;
}

/**
 * Loads `fetcher` for as long as the component lives. `key` names the answer; while it is null
 * nothing is loaded. It must not be called outside of a component's initialisation.
 */
export function createQuery<T>(
  key: () => string | null,
  fetcher: () => Promise<T>,
  options: QueryOptions = {},
): Query<T> {
  const { staleMs = 30_000, refetchOnFocus = true, everyMs } = options;

  function loadIfStale(): void {
    const name = key();
    if (name === null) return;
    const entry = entries.get(name);
    if (!entry || entry.failure || Date.now() - entry.fetchedAt >= staleMs)
      void load(name, fetcher);
  }

  $effect(() => {
    if (key() === null) return;
    untrack(loadIfStale);
    const stops: (() => void)[] = [];
    if (refetchOnFocus) {
      const onVisible = () => document.visibilityState === 'visible' && loadIfStale();
      document.addEventListener('visibilitychange', onVisible);
      stops.push(() => document.removeEventListener('visibilitychange', onVisible));
    }
    const onOnline = () => loadIfStale();
    window.addEventListener('online', onOnline);
    stops.push(() => window.removeEventListener('online', onOnline));
    if (everyMs !== undefined) {
      const timer = setInterval(() => {
        if (document.visibilityState === 'visible') loadIfStale();
      }, everyMs);
      stops.push(() => clearInterval(timer));
    }
    return () => stops.forEach((stop) => stop());
  });

  const entry = $derived.by(() => {
    const name = key();
    return name === null ? undefined : entries.get(name);
  });

  // What was invalidated is asked for again while it is shown.
  $effect(() => {
    if (entry && entry.fetchedAt === 0 && !entry.pending && !entry.failure) untrack(loadIfStale);
  });

  return {
    get data() {
      return entry?.data as T | undefined;
    },
    get failure() {
      return entry?.failure;
    },
    get isLoading() {
      return entry?.data === undefined && !entry?.failure;
    },
    get isRefreshing() {
      return entry?.pending !== undefined;
    },
    async refetch() {
      const name = key();
      if (name !== null) await load(name, fetcher);
    },
  };
}

/** Requests of one key run once at a time; callers share the answer. */
function load(name: string, fetcher: () => Promise<unknown>): Promise<void> {
  const before = entries.get(name);
  if (before?.pending) return before.pending;
  const pending = fetcher().then(
    (data) => {
      entries.set(name, { data, fetchedAt: Date.now() });
    },
    (error: unknown) => {
      entries.set(name, { data: before?.data, failure: ApiFailure.from(error), fetchedAt: 0 });
    },
  );
  entries.set(name, { ...before, fetchedAt: before?.fetchedAt ?? 0, pending });
  forgetOldest();
  return pending;
}

function forgetOldest(): void {
  for (const [name, entry] of entries) {
    if (entries.size <= ENTRIES_MAX) return;
    if (!entry.pending) entries.delete(name);
  }
}

/** Marks answers as stale, for example after a change. Pages that show one ask again. */
export function invalidate(prefix: string): void {
  for (const [name, entry] of entries)
    if (name.startsWith(prefix)) entries.set(name, { ...entry, fetchedAt: 0 });
}

/** Forgets everything, when another user logs in or out. */
export function forgetAll(): void {
  entries.clear();
}
