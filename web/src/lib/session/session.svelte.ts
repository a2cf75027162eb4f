/**
 * Who is logged in. The tokens are in cookies that scripts cannot read; this keeps the name to
 * show and when the access token ends, shared by all tabs through local storage.
 */
import type { components } from '$lib/api/schema';

type SessionView = components['schemas']['SessionView'];

export interface SessionUser {
  readonly userId: string;
  readonly name: string;
  readonly email: string;
  readonly role: string;
}

interface Stored {
  readonly user: SessionUser;
  readonly accessEndsAt: number;
}

const KEY = 'urr.session';
const LOCK = 'urr.session.refresh';
/** The access token is renewed this long before it ends. */
const EARLY_MS = 60_000;

class Session {
  #stored = $state.raw<Stored | null>(null);
  /** Whether the browser has been asked; always false while a shell is prerendered. */
  isKnown = $state(false);
  /** The open question "log in again?", answered by the login dialog. */
  question = $state.raw<((isLoggedIn: boolean) => void) | null>(null);
  #listeners = new Set<() => void>();

  /** Reads what is stored and follows other tabs. Called once by the layout. */
  start(): () => void {
    this.#stored = read();
    this.isKnown = true;
    const onStorage = (event: StorageEvent) => {
      if (event.key !== KEY && event.key !== null) return;
      this.#replace(read());
    };
    window.addEventListener('storage', onStorage);
    return () => window.removeEventListener('storage', onStorage);
  }

  get user(): SessionUser | null {
    return this.#stored?.user ?? null;
  }

  /** Calls back when another user, or nobody, is logged in. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Takes the answer of a login, registration or refresh. */
  begin(view: SessionView): void {
    const { userId, name, email, role } = view.user;
    const accessEndsAt = Date.now() + view.expiresIn * 1000;
    this.#write({ user: { userId, name, email, role }, accessEndsAt });
    this.question?.(true);
    this.question = null;
  }

  rename(name: string): void {
    if (this.#stored) this.#write({ ...this.#stored, user: { ...this.#stored.user, name } });
  }

  end(): void {
    this.#write(null);
    // Opened tickets are kept for use without a network; they belong to this user.
    if ('caches' in window) void caches.delete('urr-tickets');
    // So does what door staff see without a network.
    indexedDB.deleteDatabase('urr-check-in-list');
  }

  async refreshIfDue(): Promise<void> {
    if (this.#stored && Date.now() > this.#stored.accessEndsAt - EARLY_MS) await this.refresh();
  }

  /** Renews the tokens once for all tabs. False if the session has ended. */
  async refresh(): Promise<boolean> {
    const before = this.#stored;
    if (!before) return false;
    return navigator.locks.request(LOCK, async () => {
      const now = read();
      if (!now) return false;
      if (now.accessEndsAt > before.accessEndsAt) {
        // Another tab has just done it.
        this.#replace(now);
        return true;
      }
      try {
        const response = await fetch('/api/auth/refresh', { method: 'POST' });
        if (response.ok) {
          this.begin((await response.json()) as SessionView);
          return true;
        }
      } catch {
        // Without a network the session is not over; the request itself will tell.
      }
      return false;
    });
  }

  /** Takes over the session of cookies that a redirect has set. False if there is none. */
  async adopt(): Promise<boolean> {
    const response = await fetch('/api/auth/refresh', { method: 'POST' }).catch(() => null);
    if (!response?.ok) return false;
    this.begin((await response.json()) as SessionView);
    return true;
  }

  /** Opens the login dialog over the page; resolves when the user is back or gave up. */
  askToLogIn(): Promise<boolean> {
    return new Promise((resolve) => {
      const earlier = this.question;
      this.question = (isLoggedIn) => {
        earlier?.(isLoggedIn);
        resolve(isLoggedIn);
      };
    });
  }

  /** The user closed the dialog without logging in: the session is over. */
  giveUp(): void {
    this.question?.(false);
    this.question = null;
    this.end();
  }

  #write(stored: Stored | null): void {
    try {
      if (stored) localStorage.setItem(KEY, JSON.stringify(stored));
      else localStorage.removeItem(KEY);
    } catch {
      // Without storage the session lasts as long as the page.
    }
    this.#replace(stored);
  }

  #replace(stored: Stored | null): void {
    const isOther = stored?.user.userId !== this.#stored?.user.userId;
    this.#stored = stored;
    if (isOther) this.#listeners.forEach((listener) => listener());
  }
}

function read(): Stored | null {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? 'null') as Stored | null;
  } catch {
    return null;
  }
}

export const session = new Session();
