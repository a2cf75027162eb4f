/** Solves the server's proof of work in a worker, so that the page stays responsive. */
import { api, call, type Schemas } from '$lib/api/client';
import { clock } from '$lib/time/clock.svelte';

export type Task = Schemas['BotCheckTaskView'];
type Purpose = 'register' | 'login';

/** A solution must still be valid when the request that carries it arrives. */
const VALID_MS_MIN = 15_000;

/** The headers that registering or logging in needs now. */
export async function proofHeaders(purpose: Purpose): Promise<Record<string, string>> {
  return solve(await askForTask(purpose));
}

function askForTask(purpose: Purpose): Promise<Task> {
  return call(api.GET('/api/auth/challenge', { params: { query: { for: purpose } } }));
}

/** A solution that is made while a form is filled in, and used once. */
export class PreparedProof {
  readonly #purpose: Purpose;
  #made: Promise<{ headers: Record<string, string>; endsAt: number }> | null = null;

  constructor(purpose: Purpose) {
    this.#purpose = purpose;
  }

  begin(): void {
    this.#made ??= this.#make();
    // A failure matters when the solution is needed: then it is made again.
    this.#made.catch(() => {});
  }

  async take(): Promise<Record<string, string>> {
    const made = await this.#made?.catch(() => null);
    this.#made = null;
    const isValid = made && made.endsAt - clock.now() > VALID_MS_MIN;
    return isValid ? made.headers : proofHeaders(this.#purpose);
  }

  async #make() {
    const task = await askForTask(this.#purpose);
    const endsAt = task.expiresAt ? Date.parse(task.expiresAt) : Infinity;
    return { headers: await solve(task), endsAt };
  }
}

export async function solve(task: Task): Promise<Record<string, string>> {
  if (task.method !== 'proof-of-work' || !task.challenge || !task.difficulty) return {};
  const { challenge, difficulty } = task;
  const worker = new Worker(new URL('./proofOfWork.worker.ts', import.meta.url), {
    type: 'module',
  });
  try {
    const solution = await new Promise<string>((resolve, reject) => {
      worker.onmessage = (event: MessageEvent<string>) => resolve(event.data);
      worker.onerror = () => reject(new Error('the proof of work failed'));
      worker.postMessage({ challenge, difficulty });
    });
    return { 'x-proof-of-work': solution };
  } finally {
    worker.terminate();
  }
}
