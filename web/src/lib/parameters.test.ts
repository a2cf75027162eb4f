import { expect, it } from 'vitest';
import { readId, readPage, withParameters } from './parameters';

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

it('reads ids and pages, and takes nothing for what is neither', () => {
  const id = '01a1e1a8-0000-7000-8000-000000000000';
  const of = (text: string) => new URLSearchParams(text);
  expect(readId(of(`artist=${id}`), 'artist')).toBe(id);
  expect(readId(of('artist=x'), 'artist')).toBeNull();
  expect(readId(of(''), 'artist')).toBeNull();
  expect(['page=3', 'page=-4', 'page=x', ''].map((text) => readPage(of(text)))).toEqual([
    3, 1, 1, 1,
  ]);
});
