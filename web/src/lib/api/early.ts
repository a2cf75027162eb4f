/**
 * Requests that a shell makes itself while the scripts are still on their way, so that a page is
 * usable one round trip after its shell. The client takes the answer instead of asking again.
 */
const SAME_PATH = "['/api' + location.pathname]";

/** How many events of each list the home page asks for. */
export const HOME_LIMIT = 12;
const HOME_ON_SALE = `/api/events?status=on_sale&sort=saleStart&limit=${HOME_LIMIT}`;
const HOME_NEWEST = `/api/events?sort=newest&limit=${HOME_LIMIT}`;
const HOME_UPCOMING = `/api/events?status=upcoming&sort=saleStart&limit=${HOME_LIMIT}`;

/** What a list shows without a filter. With one, its page asks. */
const unfiltered = (url: string) => `location.search ? [] : [${JSON.stringify(url)}]`;

const EARLY: Record<string, string> = {
  '/': JSON.stringify([HOME_ON_SALE, HOME_UPCOMING, HOME_NEWEST]),
  '/events': unfiltered('/api/events?status=on_sale&sort=saleStart&page=1&limit=24'),
  '/events/[id]': SAME_PATH,
  '/artists': unfiltered('/api/artists?page=1&limit=24'),
  '/news': unfiltered('/api/news'),
  '/news/[id]': SAME_PATH,
  '/artists/[id]': SAME_PATH,
  '/terms': unfiltered('/api/auth/terms'),
  '/draws/[id]':
    "['/api/queue/draw/', '/api/events/'].map((path) => path + location.pathname.split('/')[2])",
};

/** The script element for a route's shell; empty if the page has nothing to ask early. */
export function earlyRequestScript(route: string | null): string {
  const urls = route && EARLY[route];
  if (!urls) return '';
  const options = "{ headers: { 'accept-language': document.documentElement.lang } }";
  return `<script>window.urrEarly = {}; for (const url of ${urls}) { const early = fetch(url, ${options}); early.catch(() => {}); window.urrEarly[url] = early; }</script>`;
}

/** Takes the early answer for an address; a second caller asks for itself. */
export function takeEarly(url: string): Promise<Response> | undefined {
  const early = window.urrEarly?.[url];
  if (early) delete window.urrEarly?.[url];
  return early;
}
