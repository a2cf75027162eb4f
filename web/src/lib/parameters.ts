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

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** An id in the address; what is not an id counts as absent. */
export function readId(parameters: URLSearchParams, name: string): string | null {
  const value = parameters.get(name);
  return value !== null && ID.test(value) ? value : null;
}

/** Which page of a list the address names; the first one if it names none. */
export function readPage(parameters: URLSearchParams): number {
  return Math.max(1, Number.parseInt(parameters.get('page') ?? '1', 10) || 1);
}
