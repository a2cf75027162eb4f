import { expect, test } from 'vitest';
import { posterArt } from './posterArt';

test('art is the same for the same id and differs between ids', () => {
  expect(posterArt('a')).toEqual(posterArt('a'));
  const paths = Array.from({ length: 50 }, (_, index) => posterArt(`event ${index}`).path);
  expect(new Set(paths).size).toBeGreaterThan(40);
});
