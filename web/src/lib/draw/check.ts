/** Checks a draw in a worker, so that the page stays responsive. */
import type { DrawReport } from './draw';

export async function checkInWorker(file: string, userId: string | null): Promise<DrawReport> {
  const worker = new Worker(new URL('./check.worker.ts', import.meta.url), { type: 'module' });
  try {
    return await new Promise<DrawReport>((resolve, reject) => {
      worker.onmessage = (event: MessageEvent<DrawReport>) => resolve(event.data);
      worker.onerror = () => reject(new Error('the check of the draw failed'));
      worker.postMessage({ file, userId });
    });
  } finally {
    worker.terminate();
  }
}
