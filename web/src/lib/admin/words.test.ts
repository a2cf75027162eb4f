import { expect, test } from 'vitest';
import { isSameText } from './words';

test('a typed text may differ in spaces and in the form of its letters', () => {
  expect(isSameText('  우르르   콘서트 ', '우르르 콘서트')).toBe(true);
  expect(isSameText('우르르'.normalize('NFD'), '우르르')).toBe(true);
});

test('another text is another text', () => {
  expect(isSameText('우르르 콘서', '우르르 콘서트')).toBe(false);
  expect(isSameText('', '우르르')).toBe(false);
  expect(isSameText('urr', 'URR')).toBe(false);
});
