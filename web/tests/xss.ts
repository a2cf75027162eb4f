/** Texts that become scripts where a page takes them for markup, and a small world full of them. */
import { type APIRequestContext, expect, type Page, request } from '@playwright/test';
import { holdSeats, holdTickets, registerFan, SAME_ORIGIN, watch } from './fan';
import { linkTo } from './mailbox';
import type { RunningProgram } from './program';

/** At most 50 characters, as a section's name may have. Each would set `xss`. */
export const PAYLOADS = [
  '<script>xss=1</script>',
  '</script><script>xss=1</script>',
  '</title><script>xss=1</script>',
  '</textarea><script>xss=1</script>',
  '</style><script>xss=1</script>',
  '--><script>xss=1</script>',
  ']]><script>xss=1</script>',
  '<ScRiPt>xss=1</sCrIpT>',
  '<img src=x onerror=xss=1>',
  '"><img src=x onerror=xss=1>',
  "'><img src=x onerror=xss=1>",
  '`><img src=x onerror=xss=1>',
  '<img/src=x/onerror=xss=1>',
  '<img src=x onerror="xss=1" id=xss>',
  '<IMG SRC=x ONERROR=xss=1>',
  '<svg onload=xss=1>',
  '<svg/onload=xss=1>',
  '<svg><script>xss=1</script></svg>',
  '<svg><animate onbegin=xss=1 attributeName=x>',
  '<body onload=xss=1>',
  '<iframe srcdoc="<script>parent.xss=1</script>">',
  '<iframe src="javascript:parent.xss=1">',
  '<object data="javascript:xss=1">',
  '<embed src="javascript:xss=1">',
  '<a href="javascript:xss=1" id=xss>x</a>',
  '<details open ontoggle=xss=1>x</details>',
  '<input autofocus onfocus=xss=1>',
  '<video><source onerror=xss=1></video>',
  '<audio src=x onerror=xss=1>',
  '<math><mtext><img src=x onerror=xss=1>',
  '" onmouseover=xss=1 x="',
  "' onfocus='xss=1' autofocus='",
  '" autofocus onfocus=xss=1 "',
  'javascript:xss=1//',
  '${xss=1}',
  '{{constructor.constructor("xss=1")()}}',
  '{@html "<img src=x onerror=xss=1>"}',
  '&lt;img src=x onerror=xss=1&gt;',
  '&#60;script&#62;xss=1&#60;/script&#62;',
  '\\u003cscript\\u003exss=1\\u003c/script\\u003e',
] as const;

/** All of them, as a long text. */
export const ALL = PAYLOADS.join('\n');
/** The one in texts of which a page shows one. */
export const FIRST = PAYLOADS[9];

/** A small picture. */
export const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

export interface World {
  readonly program: RunningProgram;
  readonly fan: { readonly email: string; readonly password: string; readonly name: string };
  /** One of a kind per payload, in their order. */
  readonly artists: readonly string[];
  readonly standing: readonly string[];
  /** Each with a picture, which a payload describes. */
  readonly posts: readonly string[];
  /** Cancelled, with the payloads as reasons. */
  readonly reservations: readonly string[];
  readonly ids: {
    readonly seated: string;
    readonly news: string;
    readonly hall: string;
    readonly reservation: string;
    readonly held: string;
  };
}

export async function answer(sent: Promise<import('@playwright/test').APIResponse>) {
  const response = await sent;
  const text = await response.text();
  expect(response.ok(), `${response.url()}: ${response.status()} ${text}`).toBe(true);
  return text === '' ? null : JSON.parse(text);
}

export async function apiOf(program: RunningProgram, login: object): Promise<APIRequestContext> {
  const api = await request.newContext({ baseURL: program.url, extraHTTPHeaders: SAME_ORIGIN });
  await answer(api.post('/api/auth/login', { data: login }));
  return api;
}

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
const newKey = () => ({ 'idempotency-key': crypto.randomUUID() });

export async function makeWorld(program: RunningProgram): Promise<World> {
  const admin = await apiOf(program, program.admin);
  const artists: string[] = [];
  for (const name of PAYLOADS) {
    const data = { name, description: ALL, membershipPrice: 10_000 };
    artists.push((await answer(admin.post('/api/admin/artists', { data }))).artist.id);
  }
  const artistId = artists[9]!;
  const hall = await makeHall(admin);
  const times = { saleStartsAt: inDays(-1), saleEndsAt: inDays(30), startsAt: inDays(40) };
  const texts = { description: ALL, notices: ALL, artistId };
  const prices = Object.fromEntries(PAYLOADS.map((grade) => [grade, 50_000]));
  const data = { title: FIRST, ...times, ...texts, hallId: hall.id, prices };
  const seated: string = (await answer(admin.post('/api/admin/events', { data }))).event.id;
  const standing: string[] = [];
  for (const name of PAYLOADS) {
    const ticketTypes = [{ name, price: 10_000, total: 50, description: name }];
    const data = { title: name, ...times, ...texts, venueId: hall.venueId, ticketTypes };
    standing.push((await answer(admin.post('/api/admin/events', { data }))).event.id);
  }
  let news = '';
  for (const title of PAYLOADS) {
    const data = { title, content: ALL, artistId };
    news = (await answer(admin.post('/api/news', { data, headers: newKey() }))).news.id;
  }
  // The last one is known last.
  const isOpen = async (id: string) => {
    const { event } = await answer(admin.get(`/api/events/${id}`));
    const crowd = await admin.get(`/api/queue/crowd/${id}`);
    return event.inventoryReady && crowd.status() === 200 && (await crowd.json()).phase === 'open';
  };
  for (const id of [...standing].reverse().concat(seated))
    await expect.poll(() => isOpen(id), { timeout: 60_000 }).toBe(true);
  const { fan, reservations, reservation, held } = await makeBuyer(program, seated, standing);
  const posts = await makeBoard(program, fan, artistId);
  await makeNames(program);
  for (const [index, id] of reservations.entries()) {
    const data = { reason: PAYLOADS[index], refund: 'full' };
    await answer(admin.post(`/api/admin/reservations/${id}/cancel`, { data }));
  }
  await admin.dispose();
  const ids = { seated, news, hall: hall.id, reservation, held };
  return { program, fan, artists, standing, posts, reservations, ids };
}

async function makeHall(admin: APIRequestContext): Promise<{ id: string; venueId: string }> {
  const venues: string[] = [];
  for (const name of PAYLOADS) {
    const data = { name, address: name, description: ALL };
    venues.push((await answer(admin.post('/api/admin/venues', { data }))).venue.id);
  }
  const sections = PAYLOADS.map((name, index) => ({
    name,
    grade: name,
    x: ((index % 8) - 3.5) * 600,
    y: 600 + Math.floor(index / 8) * 400,
    rows: [{ label: name, seats: 8 }],
  }));
  const venueId = venues[9]!;
  const data = { name: FIRST, description: ALL, layout: { sections } };
  const { hall } = await answer(admin.post(`/api/admin/venues/${venueId}/halls`, { data }));
  return { id: hall.id, venueId };
}

/** A fan of that name with a ticket for every event, and a hold. */
async function makeBuyer(program: RunningProgram, seated: string, standing: readonly string[]) {
  const account = await registerFan('xss', program.url, FIRST);
  const login = { email: account.email, password: account.password };
  // An address that is not verified gets no mail about events.
  const token = (await linkTo('verify', account.email, program.mails)).split('#')[1];
  const verifier = await apiOf(program, login);
  await answer(verifier.post('/api/auth/email/verify', { data: { token } }));
  await verifier.dispose();
  const api = await apiOf(program, login);
  const pay = async (reservationId: string) => {
    const data = { paymentMethod: 'approve', reservationId };
    await answer(api.post('/api/payments/process', { data }));
    return reservationId;
  };
  const reservation = await pay(await holdSeats(api, seated, [72, 73]));
  const reservations: string[] = [];
  for (const id of standing) reservations.push(await pay(await holdTickets(api, id)));
  const held = await holdSeats(api, seated, [0]);
  await api.dispose();
  return { fan: account, reservations, reservation, held };
}

/** Posts and comments of every kind, and a report with a note. */
async function makeBoard(program: RunningProgram, fan: World['fan'], artistId: string) {
  const api = await apiOf(program, { email: fan.email, password: fan.password });
  const image = { name: 'a.png', mimeType: 'image/png', buffer: PNG };
  const { url } = (await answer(api.post('/api/image/upload', { multipart: { image } }))).image;
  const posts: string[] = [];
  for (const title of PAYLOADS) {
    const data = { artistId, title, content: ALL, images: [{ url, alt: title }] };
    const created = api.post('/api/community/posts', { data, headers: newKey() });
    posts.push((await answer(created)).post.id);
  }
  const post = posts.at(-1);
  for (const content of PAYLOADS) {
    const path = `/api/community/posts/${post}/comments`;
    await answer(api.post(path, { data: { content }, headers: newKey() }));
  }
  await api.dispose();
  const reporter = await registerFan('reporter', program.url);
  const other = await apiOf(program, { email: reporter.email, password: reporter.password });
  const note = { reason: 'spam', note: PAYLOADS.slice(0, 12).join(' ') };
  await answer(other.post(`/api/community/posts/${post}/reports`, { data: note }));
  await other.dispose();
  return posts;
}

/** An account of every name. */
async function makeNames(program: RunningProgram): Promise<void> {
  for (let from = 0; from < PAYLOADS.length; from += 10) {
    const some = PAYLOADS.slice(from, from + 10);
    await Promise.all(
      some.map((name, index) => registerFan(`named${from + index}`, program.url, name)),
    );
  }
}

export interface Guard {
  /** Fails if a text was taken for more than a text. */
  check(what: string): Promise<void>;
}

/** Watches for everything that a payload could do. */
export async function watched(page: Page, url: string): Promise<Guard> {
  const problems = watch(page.context());
  const { origin } = new URL(url);
  page.on('dialog', (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (sent) => {
    const url = new URL(sent.url());
    const isOwn = url.origin === origin || ['data:', 'blob:', 'about:'].includes(url.protocol);
    if (!isOwn || /\/x$|xss/.test(url.pathname)) problems.push(`request: ${sent.url()}`);
  });
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) =>
      console.error(`violation: ${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  return {
    check: async (what) => {
      for (const frame of page.frames())
        expect(await frame.evaluate(() => 'xss' in window), `${what}: a script ran`).toBe(false);
      expect(
        await page.locator('#xss, [onerror], [onload], [onfocus], [ontoggle]').count(),
        `${what}: a text became an element`,
      ).toBe(0);
      expect(problems, what).toEqual([]);
    },
  };
}

/** What a page shows: its text, and what is in its fields. */
export function shownBy(page: Page): Promise<string> {
  return page.evaluate(() => {
    const fields = document.querySelectorAll<HTMLInputElement>('input, textarea');
    const options = document.querySelectorAll('option');
    return [
      document.body.innerText,
      ...[...fields].map((field) => field.value),
      ...[...options].map((option) => option.textContent ?? ''),
    ].join('\n');
  });
}
