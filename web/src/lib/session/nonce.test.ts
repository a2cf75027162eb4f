import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { findNonce, leadingZeroBits } from './nonce';

test('leading zero bits are counted over word borders', () => {
  expect(leadingZeroBits(Uint32Array.of(0x8000_0000, 0))).toBe(0);
  expect(leadingZeroBits(Uint32Array.of(0x0000_ffff, 0))).toBe(16);
  expect(leadingZeroBits(Uint32Array.of(0, 0x4000_0000))).toBe(33);
});

test('a nonce has letters and digits only and is hard enough', () => {
  const nonce = findNonce('challenge:', 10);
  expect(nonce).toMatch(/^[0-9a-z]+$/);
  const digest = createHash('sha256').update(`challenge:${nonce}`).digest();
  expect(digest.readUInt16BE(0) >> 6).toBe(0);
});
