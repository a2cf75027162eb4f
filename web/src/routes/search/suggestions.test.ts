import { expect, it } from 'vitest';
import { suggestionsOf } from './suggestions';

const found = [
  { artistId: 'a', artistName: '한강 밴드', venueName: '강변 극장' },
  { artistId: 'a', artistName: '한강 밴드', venueName: '한빛 홀' },
  { artistId: null, artistName: null, venueName: '한빛 홀' },
  { artistId: 'a', artistName: '한강 밴드', venueName: '별마당' },
];

it('suggests artists and venues of what was found, the most frequent first', () => {
  expect(suggestionsOf(found, 'ㅎ')).toEqual([
    { text: '한강 밴드', artistId: 'a' },
    { text: '한빛 홀', artistId: null },
    { text: '강변 극장', artistId: null },
    { text: '별마당', artistId: null },
  ]);
});

it('does not suggest the venue that was searched for', () => {
  expect(suggestionsOf(found, '한빛 홀').map(({ text }) => text)).not.toContain('한빛 홀');
});
