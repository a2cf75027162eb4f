import type { Reroute } from '@sveltejs/kit';

/** English shells are prerendered below `/en`; the routes are the same. */
export const reroute: Reroute = ({ url }) => {
  if (url.pathname === '/en') return '/';
  if (url.pathname.startsWith('/en/')) return url.pathname.slice('/en'.length);
};
