/** Layouts from files of either kind, refused with sentences that tell the place. */
import * as m from '$lib/text/messages';
import { readCsv } from './csv';
import { readJson } from './json';
import type { EditorLayout } from './model';
import { csvSentence, jsonSentence, mistakeSentence } from './sentences';
import { findMistakes } from './validate';

const CHARS_MAX = 20_000_000;
const SHOWN_MAX = 20;

export type FileResult =
  { readonly layout: EditorLayout } | { readonly problems: readonly string[] };

export function readLayoutFile(text: string): FileResult {
  const isJson = /^\ufeff?\s*[{[]/.test(text);
  if (text.length > CHARS_MAX) return { problems: [m.adminLayout_import_large()] };
  if (isJson) {
    const result = readJson(text);
    if ('problems' in result) return shortened(result.problems.map(jsonSentence));
    return checked(result.layout);
  }
  const result = readCsv(text);
  if ('problems' in result) return shortened(result.problems.map(csvSentence));
  return checked(result.layout);
}

/** What the catalogue would refuse is not opened: it may not even be drawable. */
function checked(layout: EditorLayout): FileResult {
  const mistakes = findMistakes(layout);
  return mistakes.length > 0 ? shortened(mistakes.map(mistakeSentence)) : { layout };
}

function shortened(problems: readonly string[]): FileResult {
  const rest = problems.length - SHOWN_MAX;
  return { problems: rest > 0 ? [...problems.slice(0, SHOWN_MAX), `… +${rest}`] : problems };
}
