/** Runs the program on a free port with a private data folder and an administrator. */
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startMailServer } from './mailbox';

const START_MS = 60_000;
const ADMIN = { email: 'organiser@example.com', password: 'an organiser has a long secret' };

/** Tests are many fans behind one address, and do not wait for what is the same at any speed. */
const TEST_SETTINGS = {
  URR_GATEWAY_RATE_LIMIT_AUTH_RPM: '60000',
  URR_GATEWAY_RATE_LIMIT_QUEUE_RPM: '60000',
  URR_GATEWAY_RATE_LIMIT_BOOKING_RPM: '60000',
  URR_GATEWAY_RATE_LIMIT_LOGIN_ADDRESS_RPM: '60000',
  URR_GATEWAY_RATE_LIMIT_LOGIN_ACCOUNT_RPM: '60000',
  URR_AUTH_BOT_CHECK_BITS: '10',
  URR_AUTH_IDENTITY_PROVIDER: 'sandbox',
  // The tests have no network.
  URR_QUEUE_DRAW_BEACON: 'offline',
  URR_QUEUE_ADMISSION_INTERVAL_MS: '200',
  URR_CATALOG_EVENT_STATUS_INTERVAL_MS: '200',
  URR_PAYMENTS_TIMEOUT_SECONDS: '1',
  // Fans are told of openings a day before, and have a head start of a few seconds.
  URR_ALERTS_SALE_LEAD_SECONDS: '86400',
  URR_ALERTS_HEAD_START_SECONDS: '4',
};

/** As much of the report as tests compare. */
export interface MoneyAudit {
  readonly explained: boolean;
  readonly ledger: {
    readonly charged: number;
    readonly refunded: number;
    readonly sold: number;
    readonly cancelled: number;
    readonly owed: number;
    readonly balances: readonly { readonly account: string; readonly balance: number }[];
  };
}

export interface RunningProgram {
  readonly url: string;
  readonly admin: { readonly email: string; readonly password: string };
  /** The folder of the mails that it has sent. */
  readonly mails: string;
  /** Starts it again with other settings, on the same data. */
  restart(settings: Record<string, string>): Promise<void>;
  /** What `urr audit money` says; it fails if anything is not explained. */
  audit(): Promise<MoneyAudit>;
  /** Runs a command of the program on its data, and returns what it says. */
  run(...words: string[]): Promise<string>;
  stop(): Promise<void>;
}

/** `settings` are environment variables of the program, such as `URR_SEATS_HOLD_TTL_SECONDS`. */
export async function runProgram(settings: Record<string, string> = {}): Promise<RunningProgram> {
  const program =
    process.env.URR_PROGRAM ?? fileURLToPath(new URL('../../target/debug/urr', import.meta.url));
  if (!existsSync(program))
    throw new Error(`there is no program ${program}: cargo build --bin urr`);

  const data = mkdtempSync(join(tmpdir(), 'urr-web-test-'));
  const port = await freePort();
  const mails = await startMailServer();
  let env: NodeJS.ProcessEnv = {
    ...withoutSettings(process.env),
    ...TEST_SETTINGS,
    URR_MAIL_SENDER: 'smtp',
    URR_MAIL_FROM: 'URR <tickets@urr.example>',
    URR_MAIL_SMTP_HOST: '127.0.0.1',
    URR_MAIL_SMTP_PORT: String(mails.port),
    URR_MAIL_SMTP_SECURITY: 'none',
    ...settings,
  };
  const url = `http://127.0.0.1:${port}`;
  const start = () => {
    const words = ['up', '--port', String(port), '--data', data];
    const running = spawn(program, words, { stdio: 'ignore', env });
    const ended = new Promise<void>((resolve) => running.once('exit', () => resolve()));
    return { running, ended };
  };
  let current = start();
  const end = async () => {
    current.running.kill('SIGTERM');
    await current.ended;
  };
  const restart = async (changed: Record<string, string>) => {
    await end();
    env = { ...env, ...changed };
    current = start();
    await untilReady(`${url}/api/events`);
  };
  const stop = async () => {
    await end();
    await mails.stop();
    rmSync(data, { recursive: true, force: true });
  };
  try {
    await untilReady(`${url}/api/events`);
    await createAdmin(program, data, env);
  } catch (error) {
    await stop();
    throw error;
  }
  const audit = () => auditMoney(program, ['--data', data], env);
  const run = async (...words: string[]) => {
    const { stdout } = await promisify(execFile)(program, [...words, '--data', data], { env });
    return stdout;
  };
  return { url, admin: ADMIN, mails: mails.folder, audit, restart, run, stop };
}

/**
 * A program whose ledger no other test changes meanwhile: a new one, or the system that
 * `URR_TEST_CONFIG` is the operator's configuration of, if that runs nothing else.
 */
export function runOwnProgram(settings: Record<string, string>): Promise<RunningProgram> {
  const config = process.env.URR_TEST_CONFIG;
  return config ? Promise.resolve(runningProgram(config)) : runProgram(settings);
}

function runningProgram(config: string): RunningProgram {
  const { URR_PROGRAM = '', URR_URL = '', URR_TEST_ADMIN, URR_TEST_MAILS = '' } = process.env;
  const env = withoutSettings(process.env);
  return {
    url: URR_URL,
    admin: JSON.parse(URR_TEST_ADMIN ?? 'null'),
    mails: URR_TEST_MAILS,
    restart: () => Promise.reject(new Error(`nobody restarts ${URR_URL}`)),
    audit: () => auditMoney(URR_PROGRAM, ['--config', config], env),
    run: async (...words) => {
      const all = [...words, '--config', config];
      return (await promisify(execFile)(URR_PROGRAM, all, { env })).stdout;
    },
    stop: () => Promise.resolve(),
  };
}

async function auditMoney(program: string, place: readonly string[], env: NodeJS.ProcessEnv) {
  const words = ['audit', 'money', '--json', ...place];
  const { stdout } = await promisify(execFile)(program, words, { env });
  return JSON.parse(stdout) as MoneyAudit;
}

/**
 * The settings of the tests themselves are none of the program's, which refuses what it does not
 * know. Only the folder of pages is passed on, for those who change pages.
 */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const isKept = (name: string) => !name.startsWith('URR_') || name === 'URR_GATEWAY_PAGES_DIR';
  return Object.fromEntries(Object.entries(env).filter(([name]) => isKept(name)));
}

function createAdmin(program: string, data: string, env: NodeJS.ProcessEnv): Promise<void> {
  const command = spawn(program, ['admin', 'create', '--email', ADMIN.email, '--data', data], {
    stdio: ['pipe', 'ignore', 'inherit'],
    env,
  });
  command.stdin.end(`${ADMIN.password}\n`);
  return new Promise((resolve, reject) => {
    command.once('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`no administrator: exit code ${code}`)),
    );
  });
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
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`the program did not answer ${url} within ${START_MS / 1000} s`);
}
