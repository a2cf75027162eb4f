/** Addresses in a text that somebody wrote. Everything else of it is shown as text. */
export interface TextPart {
  readonly text: string;
  /** Set if the part is an address. */
  readonly href?: string;
}

const ADDRESS = /https?:\/\/[^\s<>"'`]+/gu;
/** What ends a sentence and not an address. */
const TRAILING = /[.,;:!?)\]}]+$/u;

export function splitLinks(text: string): TextPart[] {
  const parts: TextPart[] = [];
  let end = 0;
  for (const found of text.matchAll(ADDRESS)) {
    const address = found[0].replace(TRAILING, '');
    if (!isWebAddress(address)) continue;
    if (found.index > end) parts.push({ text: text.slice(end, found.index) });
    parts.push({ text: address, href: address });
    end = found.index + address.length;
  }
  if (end < text.length) parts.push({ text: text.slice(end) });
  return parts;
}

function isWebAddress(address: string): boolean {
  return URL.canParse(address) && /^https?:$/u.test(new URL(address).protocol);
}
