import { expect, test } from 'vitest';
import { isProgramPage, loginPath, returnPath } from './return';

const at = (path: string) => new URL(path, 'https://urr.example');

test('a login remembers the page and its filters', () => {
  const login = at(loginPath(at('/events?status=upcoming')));
  expect(returnPath(login)).toBe('/events?status=upcoming');
});

test.each([
  'https://evil.example/',
  '//evil.example/',
  '/\\evil.example',
  'javascript:alert(1)',
  '/login?return=/x',
  '/register',
  'events',
])('%s is not a place to return to', (wanted) => {
  expect(returnPath(at(`/login?return=${encodeURIComponent(wanted)}`))).toBe('/');
});

test.each([
  ['/queue/1', true],
  ['/queue', true],
  ['/sandbox/pay?orderId=1', true],
  ['/queues', false],
  ['/events/1', false],
])('%s is made by the program: %s', (path, expected) => {
  expect(isProgramPage(path)).toBe(expected);
});
