/** Reads the texts of a language: all files of its folder, each key once. */
import { readdirSync, readFileSync } from 'node:fs';

/** @param {'ko' | 'en'} locale @returns {Record<string, string>} */
export function readTexts(locale) {
  const folder = new URL(`../messages/${locale}/`, import.meta.url);
  /** @type {Record<string, string>} */
  const texts = {};
  for (const file of readdirSync(folder).sort()) {
    const added = JSON.parse(readFileSync(new URL(file, folder), 'utf8'));
    for (const [key, text] of Object.entries(added)) {
      if (key in texts) throw new Error(`messages/${locale}/${file} has "${key}" again`);
      texts[key] = text;
    }
  }
  return texts;
}
