/// <reference no-default-lib="true"/>
/// <reference lib="esnext" />
/// <reference lib="webworker" />
/**
 * Keeps the files of this build, the shells of visited pages and opened tickets, so that a ticket
 * can be shown without a network. Prices and places are never kept: they would be wrong.
 */
import { build, version } from '$service-worker';

const worker = self as unknown as ServiceWorkerGlobalScope;

const FILES = `urr-files-${version}`;
const SHELLS = `urr-shells-${version}`;
/** The page deletes this one when the user logs out. */
const TICKETS = 'urr-tickets';
const KEPT = [FILES, SHELLS, TICKETS];

/** `scripts/manifest.js` writes here what no page of fans loads. */
const organisersFiles = new Set('__FILES_OF_ORGANISERS__'.split(' '));
const SLICE = /\/(rest|slice)-/;
const TICKET = /^\/api\/reservations\/[0-9a-f-]{36}$/;
/** Pages that the program makes itself. */
const NOT_OURS = /^\/(api|queue|docs|sandbox)(\/|$)/;
const ID = /[0-9a-f]{8}-[0-9a-f-]{27}/g;
const buildFiles = new Set(build);
/** Answers vary by language and encoding; one browser keeps one of each. */
const IGNORE_VARY = { ignoreVary: true };

worker.addEventListener('install', (event) => {
  event.waitUntil(keepFiles());
});

worker.addEventListener('activate', (event) => {
  event.waitUntil(forgetOldBuilds());
});

worker.addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== 'GET' || url.origin !== worker.location.origin) return;
  if (buildFiles.has(url.pathname)) event.respondWith(fileFirst(request));
  else if (TICKET.test(url.pathname)) event.respondWith(ticket(request));
  else if (request.mode === 'navigate' && !NOT_OURS.test(url.pathname))
    event.respondWith(shell(request, url));
});

/** A page asks to be kept, with all that it may load, before it is opened a second time. */
worker.addEventListener('message', (event) => {
  const { keep } = (event.data ?? {}) as { keep?: unknown };
  if (typeof keep !== 'string' || !keep.startsWith('/')) return;
  const isOrganisers = /^(\/en)?\/admin(\/|$)/.test(keep);
  // The files come first: whoever finds the shell kept finds them too.
  event.waitUntil(
    (isOrganisers ? keepOrganisersFiles() : Promise.resolve()).then(() => keepShell(keep)),
  );
});

async function keepShell(path: string): Promise<void> {
  const response = await fetch(path).catch(() => null);
  const shells = await caches.open(SHELLS);
  if (response?.ok && !response.redirected) await shells.put(path.replace(ID, '_'), response);
}

async function keepOrganisersFiles(): Promise<void> {
  const files = await caches.open(FILES);
  const kept = new Set((await files.keys()).map(({ url }) => new URL(url).pathname));
  await files.addAll(build.filter((file) => organisersFiles.has(file) && !kept.has(file)));
}

async function keepFiles(): Promise<void> {
  const files = await caches.open(FILES);
  // Slices of the font are many and mostly unused; they are kept when they are first needed. So is
  // what only organisers load.
  await files.addAll(build.filter((file) => !SLICE.test(file) && !organisersFiles.has(file)));
  const shells = await caches.open(SHELLS);
  await shells.add('/offline');
  await worker.skipWaiting();
}

async function forgetOldBuilds(): Promise<void> {
  const names = await caches.keys();
  const old = names.filter((name) => name.startsWith('urr-') && !KEPT.includes(name));
  await Promise.all(old.map((name) => caches.delete(name)));
  await worker.clients.claim();
}

async function fileFirst(request: Request): Promise<Response> {
  const files = await caches.open(FILES);
  const kept = await files.match(request, IGNORE_VARY);
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok) await files.put(request, response.clone());
  return response;
}

/** A shell has no data, so all addresses of one route share it. */
async function shell(request: Request, url: URL): Promise<Response> {
  const shells = await caches.open(SHELLS);
  const route = url.pathname.replace(ID, '_');
  try {
    const response = await fetch(request);
    if (response.ok && !response.redirected) await shells.put(route, response.clone());
    return response;
  } catch {
    return (
      (await shells.match(route, IGNORE_VARY)) ??
      (await shells.match('/offline', IGNORE_VARY)) ??
      Response.error()
    );
  }
}

async function ticket(request: Request): Promise<Response> {
  const tickets = await caches.open(TICKETS);
  try {
    const response = await fetch(request);
    if (response.ok) await tickets.put(request.url, response.clone());
    return response;
  } catch (error) {
    const kept = await tickets.match(request.url, IGNORE_VARY);
    if (kept) return kept;
    throw error;
  }
}
