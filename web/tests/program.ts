/** Starts the program on a free port with a private data folder, and stops it afterwards. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startMailServer } from './mailbox';

const START_MS = 60_000;

export default async function startProgram(): Promise<(() => Promise<void>) | undefined> {
  if (process.env.URR_URL) return undefined;
  const program =
    process.env.URR_PROGRAM ?? fileURLToPath(new URL('../../target/debug/urr', import.meta.url));
  if (!existsSync(program))
    throw new Error(`there is no program ${program}: cargo build --bin urr`);

  const data = mkdtempSync(join(tmpdir(), 'urr-web-test-'));
  const port = await freePort();
  const mails = await startMailServer();
  const running = spawn(program, ['up', '--port', String(port), '--data', data], {
    stdio: 'ignore',
    env: {
      ...process.env,
      URR_MAIL_SENDER: 'smtp',
      URR_MAIL_FROM: 'URR <tickets@urr.example>',
      URR_MAIL_SMTP_HOST: '127.0.0.1',
      URR_MAIL_SMTP_PORT: String(mails.port),
      URR_MAIL_SMTP_SECURITY: 'none',
    },
  });
  process.env.URR_TEST_MAILS = mails.folder;
  const ended = new Promise<void>((resolve) => running.once('exit', () => resolve()));
  const url = `http://127.0.0.1:${port}`;
  process.env.URR_URL = url;
  await untilReady(`${url}/api/events`);
  return async () => {
    running.kill('SIGTERM');
    await ended;
    await mails.stop();
    rmSync(data, { recursive: true, force: true });
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

async function untilReady(url: string): Promise<void> {
  const giveUpAt = Date.now() + START_MS;
  while (Date.now() < giveUpAt) {
    const response = await fetch(url).catch(() => null);
    if (response?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`the program did not answer ${url} within ${START_MS / 1000} s`);
}
