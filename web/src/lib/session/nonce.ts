/** The search of the proof of work. */
import { sha256 } from '../hash/sha256';

export function leadingZeroBits(digest: Uint32Array): number {
  let bits = 0;
  for (const word of digest) {
    const zeros = Math.clz32(word);
    bits += zeros;
    if (zeros < 32) break;
  }
  return bits;
}

/** The nonce, in letters and digits, that makes `prefix + nonce` hard enough. */
export function findNonce(prefix: string, difficulty: number): string {
  const encoder = new TextEncoder();
  for (let attempt = 0; ; attempt++) {
    const nonce = attempt.toString(36);
    if (leadingZeroBits(sha256(encoder.encode(prefix + nonce))) >= difficulty) return nonce;
  }
}
