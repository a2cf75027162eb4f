import { describe, expect, it } from 'vitest';
import { splitLinks } from './links';

const hrefs = (text: string) => splitLinks(text).flatMap((part) => part.href ?? []);

describe('splitLinks', () => {
  it('finds addresses and keeps every letter', () => {
    const text = '보세요: https://urr.example/a?b=1. 그리고 (http://x.example)!\n끝';
    expect(hrefs(text)).toEqual(['https://urr.example/a?b=1', 'http://x.example']);
    expect(
      splitLinks(text)
        .map((part) => part.text)
        .join(''),
    ).toBe(text);
    expect(splitLinks('')).toEqual([]);
  });

  it('links nothing that is not an address of the web', () => {
    for (const text of [
      'javascript:alert(1)',
      'data:text/html,<script>alert(1)</script>',
      '<a href="javascript:alert(1)">x</a>',
      'https://',
      '//evil.example',
    ])
      expect(hrefs(text)).toEqual([]);
    expect(hrefs('https://x.example/"onmouseover="alert(1)')).toEqual(['https://x.example/']);
  });
});
