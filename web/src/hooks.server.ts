import type { Handle } from '@sveltejs/kit';
import { earlyRequestScript } from '$lib/api/early';
import { setPrerenderLocale } from '$lib/text/locale';

/** Runs while a shell is prerendered, one at a time; there is no server of its own. */
export const handle: Handle = ({ event, resolve }) => {
  const isEnglish = event.url.pathname === '/en' || event.url.pathname.startsWith('/en/');
  const lang = isEnglish ? 'en' : 'ko';
  setPrerenderLocale(lang);
  return resolve(event, {
    transformPageChunk: ({ html }) =>
      html
        .replace('%urr.lang%', lang)
        .replace('%urr.early%', () => earlyRequestScript(event.route.id)),
    preload: ({ type, path }) =>
      type === 'js' ||
      type === 'css' ||
      (type === 'font' && /\/(text|digits|display)\./.test(path)),
  });
};
