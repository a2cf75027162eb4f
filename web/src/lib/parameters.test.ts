import { expect, it } from 'vitest';
import { withParameters } from './parameters';

it('changes what is named and keeps the rest', () => {
  const here = new URL('http://urr.example/events?status=ended&page=3');
  expect(withParameters(here, { page: null, sort: 'title' })).toBe(
    '/events?status=ended&sort=title',
  );
  expect(withParameters(here, { page: null, status: '' })).toBe('/events');
});

it('makes links of a shell, which has no address', () => {
  expect(withParameters('/events', { status: 'upcoming', page: null })).toBe(
    '/events?status=upcoming',
  );
});
