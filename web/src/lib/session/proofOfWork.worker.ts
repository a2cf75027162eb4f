/** Finds a nonce so that SHA-256 of `<challenge>:<nonce>` begins with `difficulty` zero bits. */
import { findNonce } from './nonce';

self.onmessage = (event: MessageEvent<{ challenge: string; difficulty: number }>) => {
  const { challenge, difficulty } = event.data;
  self.postMessage(`${challenge}:${findNonce(`${challenge}:`, difficulty)}`);
};
