/**
 * Recomputes a draw from its published file, as `docs/DRAW.md` specifies. It has nothing of the page
 * and nothing of the network: a file goes in, a report comes out.
 */
import { hmacSha256, sha256Bytes } from '../hash/sha256';
import { isSigned, parseBeacon, roundFor } from './beacon';

/** What is checked, in this order. The first one that fails ends it. */
export const CHECKS = [
  'format',
  'commitment',
  'time',
  'entrants',
  'digest',
  'beacon',
  'seed',
  'order',
  'arrivals',
] as const;
export type Check = (typeof CHECKS)[number];

export interface DrawHeader {
  readonly event: string;
  readonly commitment: string;
  readonly committedAt: string;
  readonly closedAt: string;
  readonly secret: string;
  readonly digest: string;
  readonly arrivals: string;
  readonly fixedAt: string;
  /** `drand`, its network, round and signature, or `offline` and a value. */
  readonly beacon: string;
  readonly seed: string;
  readonly count: number;
}

export interface DrawReport {
  /** Null if the file has no readable header. */
  readonly header: DrawHeader | null;
  /** The first check that failed; null if the draw is as it should be. */
  readonly failed: Check | null;
  /** The line of the file that failed, from 1, where there is one. */
  readonly line: number | null;
  /** The place of the user who was asked for, from 1; null if they did not take part. */
  readonly rank: number | null;
}

const TAG_BYTES = 16;
const HEADER_LINES = 12;
const DIGEST = /^[0-9a-f]{64}$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/;
const BEACON = /^(drand [0-9a-f]{64} [1-9]\d{0,15} [0-9a-f]{96}|offline [0-9a-f]{64})$/;
const COUNT = /^(0|[1-9]\d{0,8})$/;
const ENTRANT = /^([0-9a-f]{32}) ([1-9]\d{0,8})$/;

/** The header, in the order of its lines. */
const FIELDS: readonly [keyof DrawHeader, RegExp][] = [
  ['event', UUID],
  ['commitment', DIGEST],
  ['committedAt', TIME],
  ['closedAt', TIME],
  ['secret', DIGEST],
  ['digest', DIGEST],
  ['arrivals', DIGEST],
  ['fixedAt', TIME],
  ['beacon', BEACON],
  ['seed', DIGEST],
  ['count', COUNT],
];

class Failed extends Error {
  constructor(
    readonly check: Check,
    readonly line: number | null = null,
  ) {
    super(check);
  }
}

/** Checks the text of a file, and finds a user in it. */
export function checkDraw(file: string, userId: string | null): DrawReport {
  let header: DrawHeader | null = null;
  try {
    const lines = file.split('\n');
    // Every line ends with a line feed, the last one too.
    if (lines.pop() !== '') throw new Failed('format', lines.length + 1);
    header = readHeader(lines);
    checkHeader(header);
    const entrants = readEntrants(lines, header.count);
    checkEntrants(entrants, header);
    const mine = userId === null ? null : toHex(entrantTag(header.event, userId));
    const index = mine === null ? -1 : entrants.tags.indexOf(mine);
    return { header, failed: null, line: null, rank: index < 0 ? null : index + 1 };
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    return { header, failed: error.check, line: error.line, rank: null };
  }
}

/** The name of a user in the draw of an event: known to those who know the id of the user. */
export function entrantTag(eventId: string, userId: string): Uint8Array {
  const ids = [fromHex(eventId.replaceAll('-', '')), fromHex(userId.replaceAll('-', ''))];
  return digest('urr-entrant-v1', ...ids).subarray(0, TAG_BYTES);
}

function readHeader(lines: readonly string[]): DrawHeader {
  if (lines[0] !== 'urr-draw-v2') throw new Failed('format', 1);
  const values: Record<string, string> = {};
  FIELDS.forEach(([name, shape], index) => {
    const value = lines[index + 1]?.match(/^(\w+) (.*)$/);
    if (value?.[1] !== name || !shape.test(value[2] ?? '')) throw new Failed('format', index + 2);
    values[name] = value[2] ?? '';
  });
  return { ...(values as unknown as DrawHeader), count: Number(values.count) };
}

function checkHeader(header: DrawHeader): void {
  const event = fromHex(header.event.replaceAll('-', ''));
  const commitment = digest('urr-draw-v2', event, fromHex(header.secret));
  if (toHex(commitment) !== header.commitment) throw new Failed('commitment');
  if (sortable(header.committedAt) >= sortable(header.closedAt)) throw new Failed('time');
}

/** Times of one zone compare as texts once their fractions are equally long. */
function sortable(time: string): string {
  const [, seconds = '', fraction = ''] = time.match(TIME) ?? [];
  return `${seconds}.${fraction.padEnd(9, '0')}`;
}

interface Entrants {
  /** In drawn order, as hexadecimal digits: they sort as their bytes do. */
  readonly tags: readonly string[];
  readonly arrivals: readonly number[];
}

function readEntrants(lines: readonly string[], count: number): Entrants {
  if (lines.length !== HEADER_LINES + count)
    throw new Failed('entrants', Math.min(lines.length, HEADER_LINES + count) + 1);
  const tags: string[] = [];
  const arrivals: number[] = [];
  for (let line = HEADER_LINES; line < lines.length; line++) {
    const parts = ENTRANT.exec(lines[line] ?? '');
    if (!parts) throw new Failed('entrants', line + 1);
    tags.push(parts[1] ?? '');
    arrivals.push(Number(parts[2]));
  }
  const seen = new Set<string>();
  tags.forEach((tag, index) => {
    if (seen.has(tag)) throw new Failed('entrants', HEADER_LINES + index + 1);
    seen.add(tag);
  });
  return { tags, arrivals };
}

function checkEntrants({ tags, arrivals }: Entrants, header: DrawHeader): void {
  const entrants = digest('urr-entrants-v1', fromHex([...tags].sort().join('')));
  if (toHex(entrants) !== header.digest) throw new Failed('digest');
  checkBeacon(header);
  const seed = digest('urr-seed-v2', fromHex(header.secret), entrants, randomness(header.beacon));
  if (toHex(seed) !== header.seed) throw new Failed('seed');
  checkOrder(tags, seed);
  checkArrivals(tags, arrivals, header.arrivals);
}

/** Whether drand signed the round that belongs to the list. An offline value proves nothing. */
function checkBeacon({ beacon, fixedAt }: DrawHeader): void {
  const value = parseBeacon(beacon);
  if (value && (value.round !== roundFor(fixedAt) || !isSigned(value))) throw new Failed('beacon');
}

/** What a beacon's value adds to the seed. */
function randomness(beacon: string): Uint8Array {
  const value = fromHex(beacon.slice(beacon.lastIndexOf(' ') + 1));
  return beacon.startsWith('drand ') ? sha256Bytes(value) : value;
}

/** The smallest score is first; equal scores go by tag. */
function checkOrder(tags: readonly string[], seed: Uint8Array): void {
  const score = hmacSha256(seed);
  let before: Uint32Array | null = null;
  tags.forEach((tag, index) => {
    const own = score(fromHex(tag));
    const order = before ? compareWords(before, own) : -1;
    if (order > 0 || (order === 0 && (tags[index - 1] ?? '') >= tag))
      throw new Failed('order', HEADER_LINES + index + 1);
    before = own;
  });
}

function compareWords(one: Uint32Array, other: Uint32Array): number {
  for (let i = 0; i < one.length; i++) {
    const difference = (one[i] ?? 0) - (other[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function checkArrivals(tags: readonly string[], arrivals: readonly number[], expected: string) {
  const byArrival = new Array<string | undefined>(tags.length).fill(undefined);
  arrivals.forEach((arrival, index) => {
    if (arrival > tags.length || byArrival[arrival - 1] !== undefined)
      throw new Failed('arrivals', HEADER_LINES + index + 1);
    byArrival[arrival - 1] = tags[index];
  });
  if (toHex(digest('urr-arrivals-v1', fromHex(byArrival.join('')))) !== expected)
    throw new Failed('arrivals');
}

/** SHA-256 of a purpose, a zero byte and what is digested for it. */
function digest(purpose: string, ...parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, purpose.length + 1);
  const bytes = new Uint8Array(length);
  bytes.set(new TextEncoder().encode(purpose));
  let offset = purpose.length + 1;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return sha256Bytes(bytes);
}

function fromHex(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++)
    bytes[i] = Number.parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
