/**
 * SHA-256 for the proof of work. `crypto.subtle` is asynchronous: at one promise per attempt it
 * would take ten times as long, and pages over plain HTTP do not have it.
 */
const K = constants();

function constants(): Uint32Array {
  // The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
  const values = new Uint32Array(64);
  let found = 0;
  for (let candidate = 2; found < 64; candidate++) {
    let isPrime = true;
    for (let divisor = 2; divisor * divisor <= candidate; divisor++)
      if (candidate % divisor === 0) isPrime = false;
    if (!isPrime) continue;
    const root = Math.cbrt(candidate);
    values[found++] = Math.floor((root - Math.floor(root)) * 0x1_0000_0000);
  }
  return values;
}

const INITIAL = Uint32Array.of(
  0x6a09e667,
  0xbb67ae85,
  0x3c6ef372,
  0xa54ff53a,
  0x510e527f,
  0x9b05688c,
  0x1f83d9ab,
  0x5be0cd19,
);
const schedule = new Uint32Array(64);

/** The first 32 bits of the digest are enough for any difficulty that a browser can solve. */
export function sha256(bytes: Uint8Array): Uint32Array {
  const padded = new Uint8Array((((bytes.length + 8) >> 6) << 6) + 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 4, bytes.length * 8);
  const state = INITIAL.slice();
  for (let offset = 0; offset < padded.length; offset += 64) compress(state, view, offset);
  return state;
}

function compress(state: Uint32Array, view: DataView, offset: number): void {
  const w = schedule;
  for (let i = 0; i < 16; i++) w[i] = view.getUint32(offset + i * 4);
  for (let i = 16; i < 64; i++) {
    const [x, y] = [w[i - 15]!, w[i - 2]!];
    const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
    const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
    w[i] = w[i - 16]! + s0 + w[i - 7]! + s1;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as number[] as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  for (let i = 0; i < 64; i++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i]! + w[i]!) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
  }
  const sums = [a, b, c, d, e, f, g, h];
  for (let i = 0; i < 8; i++) state[i] = state[i]! + sums[i]!;
}

function rotate(value: number, bits: number): number {
  return (value >>> bits) | (value << (32 - bits));
}

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
