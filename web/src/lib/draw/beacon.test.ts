/** A round that quicknet published; the program is tested with the same one. */
import { expect, test, vi } from 'vitest';
import { isSigned, parseBeacon, roundFor } from './beacon';

const network = '52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971';
const signature =
  'b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be' +
  '41076862b98fad56e91a6b85b89cd97b';
// A signature takes a while on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const published = { network, round: 657_413, signature };

test('a round that was published is signed', () => {
  expect(isSigned(published)).toBe(true);
});

test('another signature, round or network is not', () => {
  const changed = [0, 40, 95].map((digit) => {
    const other = signature[digit] === '1' ? '2' : '1';
    return signature.slice(0, digit) + other + signature.slice(digit + 1);
  });
  for (const one of [...changed, '00'.repeat(48), `c0${'00'.repeat(47)}`, ''])
    expect(isSigned({ ...published, signature: one }), one).toBe(false);
  for (const round of [657_412, 657_414, 0])
    expect(isSigned({ ...published, round }), String(round)).toBe(false);
  expect(isSigned({ ...published, network: network.replace('52', '62') })).toBe(false);
});

test('the round of a draw appears after its list was fixed', () => {
  expect(roundFor('2023-09-15T10:59:58Z')).toBe(657_413);
  expect(roundFor('2023-09-15T10:59:58.999999Z')).toBe(657_413);
  expect(roundFor('2023-09-15T11:00:00Z')).toBe(657_414);
});

test('a value of the program itself has no round', () => {
  expect(parseBeacon(`offline ${'07'.repeat(32)}`)).toBeNull();
  expect(parseBeacon(`drand ${network} 657413 ${signature}`)).toEqual(published);
});
