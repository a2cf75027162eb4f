declare global {
  interface Window {
    /** Requests that the shell started before the scripts arrived, by address. */
    urrEarly?: Record<string, Promise<Response>>;
  }
}

export {};
