/** Solves the server's proof of work in a worker, so that the page stays responsive. */
import { api, call, type Schemas } from '$lib/api/client';

export type Task = Schemas['BotCheckTaskView'];

/** The headers that registering or logging in needs now. */
export async function proofHeaders(purpose: 'register' | 'login'): Promise<Record<string, string>> {
  const task = await call(api.GET('/api/auth/challenge', { params: { query: { for: purpose } } }));
  return solve(task);
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
