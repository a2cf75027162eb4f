/** The server's time, for countdowns. The device's clock may be wrong by minutes. */
const SAMPLES = 3;
const SLEEP_MS = 60_000;

class Clock {
  /** Server time minus device time. */
  #offsetMs = 0;
  #isMeasured = false;
  #isMeasuring = false;
  #users = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #hiddenAt = 0;
  /** Milliseconds of the server's time, renewed each second while a countdown is shown. */
  nowMs = $state(Date.now());

  now(): number {
    return Date.now() + this.#offsetMs;
  }

  /** Starts ticking for a component; returns how to stop. */
  use(): () => void {
    this.#users += 1;
    if (this.#users === 1) this.#start();
    return () => {
      this.#users -= 1;
      if (this.#users === 0) this.#stop();
    };
  }

  #start(): void {
    this.#tick();
    if (!this.#isMeasured) void this.#measure();
    document.addEventListener('visibilitychange', this.#onVisibility);
    window.addEventListener('online', this.#onOnline);
  }

  #stop(): void {
    clearTimeout(this.#timer);
    document.removeEventListener('visibilitychange', this.#onVisibility);
    window.removeEventListener('online', this.#onOnline);
  }

  /** Ticks when a second of the server begins, so that all countdowns change together. */
  #tick = (): void => {
    const nowMs = this.now();
    this.nowMs = nowMs;
    this.#timer = setTimeout(this.#tick, 1000 - (nowMs % 1000) + 5);
  };

  #onVisibility = (): void => {
    if (document.visibilityState === 'hidden') {
      this.#hiddenAt = Date.now();
      return;
    }
    this.nowMs = this.now();
    if (Date.now() - this.#hiddenAt > SLEEP_MS) void this.#measure();
  };

  #onOnline = (): void => void this.#measure();

  async #measure(): Promise<void> {
    if (this.#isMeasuring) return;
    this.#isMeasuring = true;
    await this.#takeSamples();
    this.#isMeasuring = false;
    if (this.#users === 0) return;
    clearTimeout(this.#timer);
    this.#tick();
  }

  /** The sample with the shortest round trip has the smallest error. */
  async #takeSamples(): Promise<void> {
    let best = Number.POSITIVE_INFINITY;
    for (let sample = 0; sample < SAMPLES; sample++) {
      try {
        const sentAt = performance.now();
        const response = await fetch('/api/time');
        const receivedAt = performance.now();
        const { time } = (await response.json()) as { time: string };
        const roundTripMs = receivedAt - sentAt;
        if (!response.ok || roundTripMs >= best) continue;
        best = roundTripMs;
        this.#offsetMs = Date.parse(time) + roundTripMs / 2 - Date.now();
        this.#isMeasured = true;
      } catch {
        return;
      }
    }
  }
}

export const clock = new Clock();
