/**
 * SHA-256 in steps that do not wait. `crypto.subtle` is asynchronous: a promise per digest makes
 * the proof of work and the check of a draw ten times as long, and pages over plain HTTP do not
 * have it.
 */
const BLOCK_BYTES = 64;
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

/** The digest as eight words. */
export function sha256(bytes: Uint8Array): Uint32Array {
  return finish(INITIAL, bytes, 0);
}

export function sha256Bytes(bytes: Uint8Array): Uint8Array {
  return bytesOf(sha256(bytes));
}

/**
 * HMAC-SHA256 with one key for many messages, as eight words. The key is mixed in once, so a short
 * message costs two blocks.
 */
export function hmacSha256(key: Uint8Array): (message: Uint8Array) => Uint32Array {
  const block = new Uint8Array(BLOCK_BYTES);
  block.set(key.length > BLOCK_BYTES ? sha256Bytes(key) : key);
  const keyed = (mask: number) => {
    const state = INITIAL.slice();
    compress(state, new DataView(block.map((byte) => byte ^ mask).buffer), 0);
    return state;
  };
  const [inner, outer] = [keyed(0x36), keyed(0x5c)];
  return (message) => finish(outer, bytesOf(finish(inner, message, BLOCK_BYTES)), BLOCK_BYTES);
}

/** Goes on from a state after `before` bytes, a whole number of blocks, to the digest. */
function finish(from: Uint32Array, bytes: Uint8Array, before: number): Uint32Array {
  const state = from.slice();
  const whole = bytes.length - (bytes.length % BLOCK_BYTES);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let offset = 0; offset < whole; offset += BLOCK_BYTES) compress(state, view, offset);

  const rest = bytes.subarray(whole);
  const last = new Uint8Array(rest.length + 9 <= BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES);
  last.set(rest);
  last[rest.length] = 0x80;
  const lastView = new DataView(last.buffer);
  const total = before + bytes.length;
  lastView.setUint32(last.length - 8, Math.floor(total / 0x2000_0000));
  lastView.setUint32(last.length - 4, total * 8);
  for (let offset = 0; offset < last.length; offset += BLOCK_BYTES)
    compress(state, lastView, offset);
  return state;
}

function compress(state: Uint32Array, view: DataView, offset: number): void {
  const w = schedule;
  for (let i = 0; i < 16; i++) w[i] = view.getUint32(offset + i * 4);
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15]!;
    const y = w[i - 2]!;
    const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
    const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
    w[i] = w[i - 16]! + s0 + w[i - 7]! + s1;
  }
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  let f = state[5]!;
  let g = state[6]!;
  let h = state[7]!;
  for (let i = 0; i < 64; i++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i]! + w[i]!) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0]! += a;
  state[1]! += b;
  state[2]! += c;
  state[3]! += d;
  state[4]! += e;
  state[5]! += f;
  state[6]! += g;
  state[7]! += h;
}

function rotate(value: number, bits: number): number {
  return (value >>> bits) | (value << (32 - bits));
}

function bytesOf(words: Uint32Array): Uint8Array {
  const bytes = new Uint8Array(words.length * 4);
  const view = new DataView(bytes.buffer);
  words.forEach((word, index) => view.setUint32(index * 4, word));
  return bytes;
}
