/** Whether somebody typed a text, whatever the spaces and the form of its letters. */
export function isSameText(typed: string, expected: string): boolean {
  return plain(typed) === plain(expected);
}

function plain(text: string): string {
  return text.normalize('NFC').replace(/\s+/g, ' ').trim();
}
