/** A file of a million entrants takes seconds: it is checked beside the page. */
import { checkDraw } from './draw';

self.onmessage = ({ data }: MessageEvent<{ file: string; userId: string | null }>) => {
  self.postMessage(checkDraw(data.file, data.userId));
};
