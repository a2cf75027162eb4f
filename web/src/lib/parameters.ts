/**
 * The address of a list with other search parameters; empty values are left out. A shell has no
 * address: it names its path, so that its links work before the page runs.
 */
export function withParameters(from: URL | string, changes: Record<string, string | null>): string {
  const url = typeof from === 'string' ? new URL(from, 'http://shell') : from;
  const parameters = new URLSearchParams(url.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') parameters.delete(name);
    else parameters.set(name, value);
  }
  const text = parameters.toString();
  return text ? `${url.pathname}?${text}` : url.pathname;
}
