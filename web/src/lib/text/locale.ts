/** The language of the page: that of the shell it was served with. */
export type Locale = 'ko' | 'en';

export const LOCALE_COOKIE = 'urr-language';

let current: Locale =
  typeof document !== 'undefined' && document.documentElement.lang === 'en' ? 'en' : 'ko';

export function isEnglish(): boolean {
  return current === 'en';
}

export function locale(): Locale {
  return current;
}

/** Chooses the language of a shell while it is prerendered. */
export function setPrerenderLocale(value: Locale): void {
  current = value;
}

/** Remembers the choice for the server and loads the page again in that language. */
export function switchLocale(value: Locale): void {
  const secure = location.protocol === 'https:' ? '; Secure' : '';
  document.cookie = `${LOCALE_COOKIE}=${value}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
  location.reload();
}
