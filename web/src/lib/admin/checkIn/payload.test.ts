import { generateKeyPairSync, sign } from 'node:crypto';
import { expect, test } from 'vitest';
import { isSigned, readCode, readNumber } from './payload';

const TICKET = '01980000-0000-7000-8000-00000000000a';
const EVENT = '01980000-0000-7000-8000-00000000000b';

function signer() {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const key = publicKey.export({ format: 'jwk' }).x ?? '';
  const payload = (seat: number, issue: number) => {
    const what = Buffer.alloc(40);
    Buffer.from(TICKET.replaceAll('-', ''), 'hex').copy(what, 0);
    Buffer.from(EVENT.replaceAll('-', ''), 'hex').copy(what, 16);
    what.writeUInt32BE(seat, 32);
    what.writeUInt32BE(issue, 36);
    const signed = `URR1.${what.toString('base64url')}`;
    return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`;
  };
  return { key, payload };
}

test('a code says ticket, event, seat and issue', () => {
  const { payload } = signer();
  const expected = { ticketId: TICKET, eventId: EVENT, seatId: 7, issue: 2 };
  expect(readCode(payload(7, 2))?.ticket).toEqual(expected);
  expect(readCode(payload(0xffffffff, 1))?.ticket.seatId).toBeNull();
  for (const other of [
    '',
    'hello',
    'URR1.',
    'URR1.AA.AA',
    'URR1.***.AA',
    payload(7, 2).slice(0, -9),
  ])
    expect(readCode(other), other).toBeNull();
});

test('a code is ours if one of the keys signed it', async () => {
  const [ours, earlier, forger] = [signer(), signer(), signer()];
  const keys = [ours.key, earlier.key];
  const check = async (payload: string) => {
    const code = readCode(payload);
    return code !== null && (await isSigned(code, keys));
  };
  expect(await check(ours.payload(7, 1))).toBe(true);
  expect(await check(earlier.payload(7, 1))).toBe(true);
  expect(await check(forger.payload(7, 1))).toBe(false);
  // Another seat under the same signature.
  const [, , signature] = ours.payload(7, 1).split('.');
  const [prefix, what] = ours.payload(8, 1).split('.');
  expect(await check([prefix, what, signature].join('.'))).toBe(false);
});

test('a phone without Ed25519 checks by itself', async () => {
  const [ours, forger] = [signer(), signer()];
  const importKey = crypto.subtle.importKey;
  crypto.subtle.importKey = () => Promise.reject(new Error('not supported'));
  try {
    const check = async (payload: string) => {
      const code = readCode(payload);
      return code !== null && (await isSigned(code, [ours.key]));
    };
    expect(await check(ours.payload(7, 1))).toBe(true);
    expect(await check(forger.payload(7, 1))).toBe(false);
  } finally {
    crypto.subtle.importKey = importKey;
  }
});

test('a number is read however it is typed', () => {
  for (const typed of ['T-0A1B-2C3D-4E5F', ' t-0a1b-2c3d-4e5f ', 'T0A1B2C3D4E5F'])
    expect(readNumber(typed)).toBe('T-0A1B-2C3D-4E5F');
  for (const other of ['', 'R-0A1B-2C3D-4E5F', 'T-0A1B', 'URR1.a.b'])
    expect(readNumber(other)).toBeNull();
});
