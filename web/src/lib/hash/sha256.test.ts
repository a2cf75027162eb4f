import { createHash, createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { hmacSha256, sha256, sha256Bytes } from './sha256';

const hex = (words: Uint32Array) =>
  [...words].map((word) => word.toString(16).padStart(8, '0')).join('');

test('digests agree with the standard library at every padding', () => {
  for (let length = 0; length <= 130; length++) {
    const text = 'a'.repeat(length);
    const expected = createHash('sha256').update(text).digest('hex');
    expect(hex(sha256(new TextEncoder().encode(text)))).toBe(expected);
  }
});

test('a digest of a part of a buffer is that of the part', () => {
  const bytes = new TextEncoder().encode('before-inside-after');
  const expected = createHash('sha256').update('inside').digest();
  expect(sha256Bytes(bytes.subarray(7, 13))).toEqual(new Uint8Array(expected));
});

test('keyed digests agree with the standard library for keys of every kind', () => {
  for (const keyLength of [0, 1, 32, 64, 65, 200]) {
    const key = new Uint8Array(keyLength).fill(7);
    const sign = hmacSha256(key);
    for (const length of [0, 16, 55, 56, 64, 200]) {
      const message = new Uint8Array(length).fill(3);
      expect(hex(sign(message))).toBe(createHmac('sha256', key).update(message).digest('hex'));
    }
  }
});
