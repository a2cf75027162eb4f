/** A mail server for tests: it takes every mail and keeps it in a folder, where tests find it. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@playwright/test';

export interface MailServer {
  readonly port: number;
  readonly folder: string;
  stop(): Promise<void>;
}

export async function startMailServer(): Promise<MailServer> {
  const folder = mkdtempSync(join(tmpdir(), 'urr-web-mails-'));
  const sockets = new Set<Socket>();
  let count = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    receive(socket, (mail) => {
      count += 1;
      writeFileSync(join(folder, `${String(count).padStart(6, '0')}.eml`), mail);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    folder,
    stop: async () => {
      sockets.forEach((socket) => socket.destroy());
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** As much of SMTP as the program speaks. */
function receive(socket: Socket, keep: (mail: string) => void): void {
  let text = '';
  let isData = false;
  const say = (line: string) => socket.write(`${line}\r\n`);
  say('220 ready');
  socket.on('data', (bytes) => {
    text += bytes.toString('utf8');
    for (;;) {
      const end = isData ? text.indexOf('\r\n.\r\n') : text.indexOf('\r\n');
      if (end < 0) return;
      const part = text.slice(0, end);
      text = text.slice(end + (isData ? 5 : 2));
      if (isData) {
        keep(part);
        isData = false;
        say('250 taken');
      } else if (/^EHLO/i.test(part)) say('250 mails');
      else if (/^DATA/i.test(part)) {
        isData = true;
        say('354 go on');
      } else if (/^QUIT/i.test(part)) {
        say('221 bye');
        socket.end();
      } else say('250 ok');
    }
  });
}

/** The mails to an address, the first one first, each with its number. */
export function mailsTo(email: string): { readonly number: number; readonly text: string }[] {
  const folder = process.env.URR_TEST_MAILS ?? '';
  return readdirSync(folder)
    .sort()
    .map((name) => ({ name, mail: readFileSync(join(folder, name), 'utf8') }))
    .filter(({ mail }) => mail.includes(email))
    .map(({ name, mail }) => ({ number: Number.parseInt(name, 10), text: decoded(mail) }));
}

/** Waits for a mail to an address with these words; returns its number. */
export async function mailWith(email: string, words: string): Promise<number> {
  const find = () => mailsTo(email).find(({ text }) => text.includes(words))?.number ?? 0;
  await expect.poll(find, { timeout: 15_000 }).toBeGreaterThan(0);
  return find();
}

/** The last link to a page that was mailed to an address. */
export async function linkTo(
  page: 'verify' | 'reset',
  email: string,
  folder = process.env.URR_TEST_MAILS ?? '',
): Promise<string> {
  let link = '';
  await expect
    .poll(
      () => {
        const mails = readdirSync(folder).sort().reverse();
        const texts = mails.map((name) => readFileSync(join(folder, name), 'utf8'));
        const mine = texts.filter((text) => text.includes(email)).map(decoded);
        const pattern = new RegExp(`/${page}#([0-9a-f]{64})`);
        link = mine.map((text) => pattern.exec(text)?.[0]).find(Boolean) ?? '';
        return link;
      },
      { timeout: 15_000 },
    )
    .not.toBe('');
  return link;
}

/** The text of a mail, whatever its parts are encoded with. */
function decoded(mail: string): string {
  const plain = mail.replace(/=\r\n/g, '').replace(/=3D/g, '=').replace(/=23/g, '#');
  const parts = mail
    .split('\r\n\r\n')
    .map((part) => Buffer.from(part.split('\r\n--')[0] ?? '', 'base64').toString('utf8'));
  return [plain, ...parts].join('\n');
}

/** The HTML of all mails in a folder. */
export function htmlOfMails(folder: string): string[] {
  return readdirSync(folder).flatMap((name) =>
    readFileSync(join(folder, name), 'utf8')
      .split(/\r?\n--[^\r\n]+/)
      .filter((part) => /content-type: text\/html/i.test(part))
      .map(bodyOfPart),
  );
}

function bodyOfPart(part: string): string {
  const [head = '', ...body] = part.split(/\r?\n\r?\n/);
  const text = body.join('\n\n');
  if (/base64/i.test(head)) return Buffer.from(text, 'base64').toString('utf8');
  const bytes = text
    .replace(/=\r?\n/g, '')
    .replace(/=([0-9A-F]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return /quoted-printable/i.test(head) ? Buffer.from(bytes, 'latin1').toString('utf8') : text;
}
