/** Where to go after a login: back to where the user was. Only addresses of this site count. */
export function loginPath(from: URL): string {
  const here = from.pathname + from.search;
  return here === '/' ? '/login' : `/login?return=${encodeURIComponent(here)}`;
}

export function returnPath(url: URL): string {
  const wanted = url.searchParams.get('return') ?? '/';
  try {
    const target = new URL(wanted, url.origin);
    const isOurs = wanted.startsWith('/') && target.origin === url.origin;
    const isLogin = /^\/(login|register)$/.test(target.pathname);
    return isOurs && !isLogin ? target.pathname + target.search + target.hash : '/';
  } catch {
    return '/';
  }
}

/** Pages that the program makes itself: they are loaded as a whole. */
export function isProgramPage(path: string): boolean {
  return /^\/(queue|sandbox)(\/|\?|$)/.test(path);
}
