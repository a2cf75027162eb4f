/** Reads QR codes beside the page, where the browser has no detector of its own. */
import jsQR from 'jsqr';

self.onmessage = ({ data }: MessageEvent<ImageData>) => {
  const found = jsQR(data.data, data.width, data.height, { inversionAttempts: 'dontInvert' });
  self.postMessage(found?.data ?? null);
};
