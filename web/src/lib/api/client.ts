/** Calls of the API, typed by the OpenAPI document. */
import createClient from 'openapi-fetch';
import { locale } from '$lib/text/locale';
import { session } from '$lib/session/session.svelte';
import { takeEarly } from './early';
import { ApiFailure } from './failure';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];

const TIMEOUT_MS = 15_000;
const PAYMENT_TIMEOUT_MS = 60_000;

/** Paths that decide about the session themselves. */
const SESSION_PATHS = /^\/api\/auth\/(login|register|refresh|logout|challenge|terms|social)$/;

export const api = createClient<paths>({ baseUrl: '/', fetch: send });

/** The data of an answer; a refusal is thrown as `ApiFailure`. */
export async function call<T>(
  answer: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<T> {
  const { data, error, response } = await answer;
  if (response.ok) return data as T;
  const fields = typeof error === 'object' && error !== null ? { ...error } : {};
  throw new ApiFailure(response.status, fields as Record<string, unknown>);
}

async function send(request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  if (request.method === 'GET') {
    const early = takeEarly(pathname + search);
    if (early) return inTime(early).catch(() => fetchOnce(request));
  }
  if (SESSION_PATHS.test(pathname)) return fetchOnce(request);

  await session.refreshIfDue();
  const again = request.clone();
  const response = await fetchOnce(request);
  if (response.status !== 401 || !session.user) return response;
  // The session ended elsewhere: refresh, or let the user log in without leaving the page.
  const isBack = (await session.refresh()) || (await session.askToLogIn());
  return isBack ? fetchOnce(again) : response;
}

/** The shell that asked gave no time limit. */
function inTime(early: Promise<Response>): Promise<Response> {
  const late = new Promise<never>((_, reject) => setTimeout(reject, TIMEOUT_MS));
  return Promise.race([early, late]);
}

async function fetchOnce(request: Request): Promise<Response> {
  const isPayment = new URL(request.url).pathname.startsWith('/api/payments/');
  const timeout = AbortSignal.timeout(isPayment ? PAYMENT_TIMEOUT_MS : TIMEOUT_MS);
  request.headers.set('accept-language', locale());
  try {
    return await fetch(request, { signal: AbortSignal.any([request.signal, timeout]) });
  } catch {
    throw ApiFailure.network();
  }
}
