/** The parts of a plain text: `# ` begins a heading, `- ` an item, an empty line ends a paragraph. */
export type TermsBlock =
  | { readonly shape: 'heading' | 'paragraph'; readonly text: string }
  | { readonly shape: 'list'; readonly items: string[] };

export function termsBlocks(text: string): TermsBlock[] {
  const blocks: TermsBlock[] = [];
  let paragraph: string[] = [];
  const endParagraph = () => {
    if (paragraph.length > 0) blocks.push({ shape: 'paragraph', text: paragraph.join(' ') });
    paragraph = [];
  };
  for (const line of text.split('\n').map((one) => one.trim())) {
    const heading = /^#+\s+(.*)/.exec(line)?.[1];
    const item = /^-\s+(.*)/.exec(line)?.[1];
    if (heading === undefined && item === undefined && line) {
      paragraph.push(line);
      continue;
    }
    endParagraph();
    const last = blocks.at(-1);
    if (heading) blocks.push({ shape: 'heading', text: heading });
    else if (item && last?.shape === 'list') last.items.push(item);
    else if (item) blocks.push({ shape: 'list', items: [item] });
  }
  endParagraph();
  return blocks;
}
