/** Reads QR codes from pictures: by the browser where it can, otherwise by a worker. */
interface Detector {
  detect(picture: ImageBitmapSource): Promise<{ readonly rawValue: string }[]>;
}

interface DetectorClass {
  new (options: { formats: string[] }): Detector;
  getSupportedFormats(): Promise<string[]>;
}

/** Pictures are made smaller than this: a code that fills a third of them is still read. */
const SIDE_MAX = 640;

export class CodeReader {
  #detector: Detector | null = null;
  #worker: Worker | null = null;
  #canvas: OffscreenCanvas | null = null;

  static async create(): Promise<CodeReader> {
    const reader = new CodeReader();
    const found = (globalThis as { BarcodeDetector?: DetectorClass }).BarcodeDetector;
    const formats: string[] = (await found?.getSupportedFormats().catch(() => null)) ?? [];
    if (found && formats.includes('qr_code'))
      reader.#detector = new found({ formats: ['qr_code'] });
    else reader.#startWorker();
    return reader;
  }

  /** The text of the first code in the picture, or null. One picture at a time. */
  async read(picture: HTMLVideoElement | ImageBitmap): Promise<string | null> {
    if (this.#detector) {
      try {
        const found = await this.#detector.detect(picture);
        return found[0]?.rawValue ?? null;
      } catch {
        // Some browsers have the class but not the service behind it.
        this.#detector = null;
        this.#startWorker();
      }
    }
    const pixels = this.#pixels(picture);
    return pixels && this.#askWorker(pixels);
  }

  close(): void {
    this.#worker?.terminate();
  }

  #startWorker(): void {
    this.#worker = new Worker(new URL('./decoder.worker.ts', import.meta.url), { type: 'module' });
  }

  #pixels(picture: HTMLVideoElement | ImageBitmap): ImageData | null {
    const isVideo = picture instanceof HTMLVideoElement;
    const width = isVideo ? picture.videoWidth : picture.width;
    const height = isVideo ? picture.videoHeight : picture.height;
    if (!width || !height) return null;
    const scale = Math.min(1, SIDE_MAX / Math.max(width, height));
    const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.#canvas?.width !== w || this.#canvas.height !== h)
      this.#canvas = new OffscreenCanvas(w, h);
    const context = this.#canvas.getContext('2d', { willReadFrequently: true });
    context?.drawImage(picture, 0, 0, w, h);
    return context?.getImageData(0, 0, w, h) ?? null;
  }

  #askWorker(pixels: ImageData): Promise<string | null> {
    const worker = this.#worker;
    if (!worker) return Promise.resolve(null);
    return new Promise((resolve) => {
      worker.onmessage = (event: MessageEvent<string | null>) => resolve(event.data);
      worker.onerror = () => resolve(null);
      worker.postMessage(pixels, [pixels.data.buffer]);
    });
  }
}
