/** The last searches, kept on this device only. */
const KEY = 'urr.searches';
const SEARCHES_MAX = 8;

export function readSearches(): readonly string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(stored) ? stored.filter((one) => typeof one === 'string') : [];
  } catch {
    return [];
  }
}

export function rememberSearch(search: string): readonly string[] {
  const others = readSearches().filter((one) => one !== search);
  return write([search, ...others].slice(0, SEARCHES_MAX));
}

export function forgetSearches(): readonly string[] {
  return write([]);
}

function write(searches: readonly string[]): readonly string[] {
  try {
    localStorage.setItem(KEY, JSON.stringify(searches));
  } catch {
    // Without storage nothing is remembered.
  }
  return searches;
}
