import { error } from '@sveltejs/kit';
import { dev } from '$app/environment';

export const prerender = false;

/** The components are shown while developing only. */
export function load() {
  if (!dev) error(404);
}
