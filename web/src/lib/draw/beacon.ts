/**
 * The public beacon of a draw: drand's network quicknet signs the number of a round every three
 * seconds. Nobody knows a signature before, and anybody can check it afterwards.
 */
import { bls12_381 } from '@noble/curves/bls12-381.js';
import { sha256Bytes } from '../hash/sha256';

/** Names quicknet: the hash of its parameters. */
const NETWORK = '52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971';
/** The key of quicknet, to which the hash commits. */
const PUBLIC_KEY =
  '83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c' +
  '8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb' +
  '5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a';
const DOMAIN = 'BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_';
const GENESIS_SECOND = 1_692_803_367;
const PERIOD_SECONDS = 3;
/** At least one period lies between the list and its round. */
const ROUNDS_AHEAD = 2;

export interface DrandValue {
  readonly network: string;
  readonly round: number;
  /** 48 bytes as hexadecimal digits. */
  readonly signature: string;
}

/** What the line of a file says; null for a value that the program made itself. */
export function parseBeacon(beacon: string): DrandValue | null {
  const [kind, network = '', round = '', signature = ''] = beacon.split(' ');
  return kind === 'drand' ? { network, round: Number(round), signature } : null;
}

/** The round that belongs to a list that was fixed at this time. */
export function roundFor(fixedAt: string): number {
  const second = Math.floor(Date.parse(fixedAt) / 1_000);
  return Math.floor((second - GENESIS_SECOND) / PERIOD_SECONDS) + 1 + ROUNDS_AHEAD;
}

/** Whether quicknet has signed this round so. */
export function isSigned({ network, round, signature }: DrandValue): boolean {
  if (network !== NETWORK) return false;
  const number = new DataView(new ArrayBuffer(8));
  number.setBigUint64(0, BigInt(round));
  const message = sha256Bytes(new Uint8Array(number.buffer));
  const { shortSignatures } = bls12_381;
  try {
    const [point, key] = [
      shortSignatures.Signature.fromHex(signature),
      bls12_381.G2.Point.fromHex(PUBLIC_KEY),
    ];
    return shortSignatures.verify(point, shortSignatures.hash(message, DOMAIN), key);
  } catch {
    // The digits are no point of the curve.
    return false;
  }
}
