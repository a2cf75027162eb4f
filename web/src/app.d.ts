/** Something that a person did before the scripts of a page ran. */
interface EarlyInput {
  readonly type: 'input' | 'change' | 'submit';
  readonly target: HTMLElement;
  /** Of a field, when it happened. */
  readonly value?: string;
  readonly checked?: boolean;
  readonly submitter?: HTMLElement | null;
}

declare global {
  interface Window {
    /** Gives what was kept, in its order, and keeps nothing from then on. */
    urrInput?: () => EarlyInput[];
    /** Requests that the shell started before the scripts arrived, by address. */
    urrEarly?: Record<string, Promise<Response>>;
  }
}

export {};
