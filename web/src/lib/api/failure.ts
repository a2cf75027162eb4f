/** Why a request did not succeed: the server's refusal, or no answer at all. */
export class ApiFailure extends Error {
  readonly code: string;
  readonly status: number;
  /** The server's sentence, in the language of the page. */
  readonly sentence: string | null;
  readonly traceId: string | null;
  readonly retryAfterSeconds: number | null;
  /** Further fields of the refusal, such as `opensAt` or `seatIds`. */
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(status: number, fields: Record<string, unknown>) {
    const code = typeof fields.code === 'string' ? fields.code : 'UNREADABLE_ANSWER';
    super(code);
    this.name = 'ApiFailure';
    this.code = code;
    this.status = status;
    this.sentence = typeof fields.error === 'string' ? fields.error : null;
    this.traceId = typeof fields.traceId === 'string' ? fields.traceId : null;
    this.retryAfterSeconds = typeof fields.retryAfter === 'number' ? fields.retryAfter : null;
    this.fields = fields;
  }

  /** The request never reached the server, or its answer never reached us. */
  static network(): ApiFailure {
    const isOffline = typeof navigator !== 'undefined' && !navigator.onLine;
    return new ApiFailure(0, { code: isOffline ? 'OFFLINE' : 'NETWORK' });
  }

  static from(error: unknown): ApiFailure {
    return error instanceof ApiFailure ? error : ApiFailure.network();
  }

  get isNotFound(): boolean {
    return this.status === 404;
  }
}
