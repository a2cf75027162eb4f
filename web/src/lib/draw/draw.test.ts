/** The vectors are those of the specification, which the program is tested with as well. */
import { readFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { sha256Bytes } from '../hash/sha256';
import { type Check, checkDraw } from './draw';

const specification = readFileSync(new URL('../../../../docs/DRAW.md', import.meta.url), 'utf8');
const example = specification.split('```text\n')[1]?.split('```')[0] ?? '';
const user = (last: string) => `01990000-0000-7000-8000-0000000000${last}`;

function lines(change: (lines: string[]) => void): string {
  const all = example.trimEnd().split('\n');
  change(all);
  return `${all.join('\n')}\n`;
}

function expectRefused(file: string, failed: Check, line: number | null = null): void {
  expect(checkDraw(file, null)).toMatchObject({ failed, line, rank: null });
}

// A signature takes a while on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

test('the example of the specification is right, and everybody finds their place', () => {
  expect(checkDraw(example, null)).toMatchObject({ failed: null, rank: null });
  const ranks = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'].map(
    (last) => checkDraw(example, user(last)).rank,
  );
  expect(ranks).toEqual([1, 2, 5, 4, 3, null]);
});

test('nobody can be moved', () => {
  const swapped = lines((all) => ([all[13], all[14]] = [all[14] ?? '', all[13] ?? '']));
  expectRefused(swapped, 'order', 15);
  const first = lines((all) => all.splice(12, 0, all.pop() ?? ''));
  expectRefused(first, 'order', 14);
});

test('nobody can be removed, added, replaced or named twice', () => {
  const removed = lines((all) => all.pop());
  expectRefused(removed, 'entrants', 17);
  expectRefused(removed.replace('count 5', 'count 4'), 'digest');
  const stranger = `${'ab'.repeat(16)} 6`;
  expectRefused(
    lines((all) => all.push(stranger)),
    'entrants',
    18,
  );
  expectRefused(lines((all) => all.push(stranger)).replace('count 5', 'count 6'), 'digest');
  const twice = lines((all) => (all[16] = all[15] ?? ''));
  expectRefused(twice, 'entrants', 17);
});

test('nothing of the header can be changed', () => {
  const other = (name: string) =>
    example.replace(new RegExp(`\n${name} (.)`), (_, digit) => {
      return `\n${name} ${digit === '0' ? '1' : '0'}`;
    });
  expectRefused(other('commitment'), 'commitment');
  expectRefused(other('secret'), 'commitment');
  expectRefused(other('event'), 'commitment');
  expectRefused(other('digest'), 'digest');
  expectRefused(other('seed'), 'seed');
  expectRefused(other('arrivals'), 'arrivals');
  expectRefused(example.replace('657413 b7', '657413 b8'), 'beacon');
  expectRefused(example.replace(' 657413 ', ' 657414 '), 'beacon');
  expectRefused(example.replace('drand 52', 'drand 62'), 'beacon');
  // The round is that of another second.
  expectRefused(example.replace('10:59:58Z', '11:00:05Z'), 'beacon');
});

/** A file of one entrant, which is consistent for every value of the beacon. */
function fileWith(beacon: string): string {
  const digest = (purpose: string, ...parts: string[]) =>
    hex(sha256Bytes(Buffer.concat([Buffer.from(`${purpose}\0`), ...parts.map(bytes)])));
  const [tag, secret] = ['ab'.repeat(16), '00'.repeat(32)];
  const event = '01990000-0000-7000-8000-000000000001';
  const entrants = digest('urr-entrants-v1', tag);
  const value = beacon.split(' ').at(-1) ?? '';
  const randomness = beacon.startsWith('drand') ? hex(sha256Bytes(bytes(value))) : value;
  const header = {
    event,
    commitment: digest('urr-draw-v2', event.replaceAll('-', ''), secret),
    committedAt: '2023-09-01T09:00:00Z',
    closedAt: '2023-09-15T10:59:57.25Z',
    secret,
    digest: entrants,
    arrivals: digest('urr-arrivals-v1', tag),
    fixedAt: '2023-09-15T10:59:58Z',
    beacon,
    seed: digest('urr-seed-v2', secret, entrants, randomness),
    count: '1',
  };
  const lines = Object.entries(header).map(([name, text]) => `${name} ${text}`);
  return `${['urr-draw-v2', ...lines, `${tag} 1`].join('\n')}\n`;
}

const bytes = (text: string): Buffer => Buffer.from(text, 'hex');
const hex = (value: Uint8Array): string => Buffer.from(value).toString('hex');

test('a file that is made for an invented value of the beacon is refused', () => {
  const line = /beacon (.*)/.exec(example)?.[1] ?? '';
  expect(checkDraw(fileWith(line), null).failed).toBeNull();
  // The control: without a signature to check, the same file is consistent.
  expect(checkDraw(fileWith(`offline ${'07'.repeat(32)}`), null).failed).toBeNull();
  for (const digit of [-1, -40]) {
    const invented = line.slice(0, digit) + (line.at(digit) === '1' ? '2' : '1');
    expectRefused(fileWith(invented + line.slice(line.length + digit + 1)), 'beacon');
  }
});

test('a secret that was committed to after the closing proves nothing', () => {
  const late = example.replace(/committedAt .*/, 'committedAt 2023-09-15T10:59:57.25Z');
  expectRefused(late, 'time');
  const justInTime = example.replace(/committedAt .*/, 'committedAt 2023-09-15T10:59:57.249Z');
  expect(checkDraw(justInTime, null).failed).toBeNull();
});

test('arrivals count from one, each once', () => {
  const arrival = (line: number, value: number) =>
    lines((all) => (all[line] = `${all[line]?.split(' ')[0]} ${value}`));
  expectRefused(arrival(14, 6), 'arrivals', 15);
  expectRefused(arrival(14, 1), 'arrivals', 15);
  const exchanged = lines((all) => {
    all[13] = `${all[13]?.split(' ')[0]} 5`;
    all[14] = `${all[14]?.split(' ')[0]} 2`;
  });
  expectRefused(exchanged, 'arrivals');
});

test('what is no file of a draw is said to be none', () => {
  expectRefused('', 'format', 1);
  expectRefused('<!doctype html>\n', 'format', 1);
  expectRefused(example.slice(0, -1), 'format', 17);
  expectRefused(example.replace('urr-draw-v2', 'urr-draw-v1'), 'format', 1);
  expectRefused(example.replace('count 5', 'count 05'), 'format', 12);
  expectRefused(example.replace('\nsecret', '\nsecrets'), 'format', 6);
  expectRefused(example.replace('68041bce', '68041BCE'), 'entrants', 13);
});
