import { expect, test } from 'vitest';
import { termsBlocks } from './blocks';

test('a plain text has headings, paragraphs and lists', () => {
  const text = '# 1. Purpose\nThese terms\nsay how.\n\nMore.\n- one\n- two\n\n## 2. End\n';
  expect(termsBlocks(text)).toEqual([
    { shape: 'heading', text: '1. Purpose' },
    { shape: 'paragraph', text: 'These terms say how.' },
    { shape: 'paragraph', text: 'More.' },
    { shape: 'list', items: ['one', 'two'] },
    { shape: 'heading', text: '2. End' },
  ]);
});

test('whatever an operator writes is text', () => {
  const text = '<script>alert(1)</script>\n#no heading\n-5 degrees';
  expect(termsBlocks(text)).toEqual([
    { shape: 'paragraph', text: '<script>alert(1)</script> #no heading -5 degrees' },
  ]);
  expect(termsBlocks('')).toEqual([]);
});
