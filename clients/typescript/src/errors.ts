import type { ErrorBody, ErrorCode, Lookup, Pending, Reveal } from './generated.ts';
import type { OperationId } from './operations.ts';

/**
 * - `answer`: the service, or something before it, answered with an error, or with what the API does not say
 * - `network`: no connection, or it broke
 * - `timeout`: one attempt took longer than `timeoutMs`
 * - `deadline`: a call that polls took longer than `deadlineMs`, or would have to
 * - `aborted`: your signal ended the call; `cause` is its reason
 */
export type FailureKind = 'answer' | 'network' | 'timeout' | 'deadline' | 'aborted';

/** What is known of a call that failed. */
export interface Failure {
  readonly kind: FailureKind;
  /**
   * `refused`: the service said no, and nothing was done. `unknown`: it may have been done, or be under way; nothing
   * says that it failed. Never take either for "no company".
   */
  readonly outcome: 'refused' | 'unknown';
  readonly operation: OperationId;
  /** Of the answer; null without one. */
  readonly status?: number | null;
  /** One of the error catalog, or a newer one; null where the answer has none, as a proxy's. */
  readonly code?: ErrorCode | (string & {}) | null;
  /** To be told to the service's operator; null without an answer of the service. */
  readonly requestId?: string | null;
  /** How long the service asks to wait; null: it does not say. */
  readonly retryAfterSeconds?: number | null;
  /** The answer, where it is the API's `Error`. */
  readonly body?: ErrorBody | null;
  /** Of a reveal: reveal again with it, and go on with the same reveal. */
  readonly idempotencyKey?: string | null;
  /** Of a call that polls: what was last seen of the work, which goes on without the caller. */
  readonly unfinished?: Pending | Lookup | Reveal | null;
}

/** Every way in which a call can fail. */
export class DoorplateError extends Error implements Required<Failure> {
  override readonly name = 'DoorplateError';
  readonly kind: FailureKind;
  readonly outcome: 'refused' | 'unknown';
  readonly operation: OperationId;
  readonly status: number | null;
  readonly code: ErrorCode | (string & {}) | null;
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;
  readonly body: ErrorBody | null;
  readonly idempotencyKey: string | null;
  readonly unfinished: Pending | Lookup | Reveal | null;

  constructor(message: string, failure: Failure, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.kind = failure.kind;
    this.outcome = failure.outcome;
    this.operation = failure.operation;
    this.status = failure.status ?? null;
    this.code = failure.code ?? null;
    this.requestId = failure.requestId ?? null;
    this.retryAfterSeconds = failure.retryAfterSeconds ?? null;
    this.body = failure.body ?? null;
    this.idempotencyKey = failure.idempotencyKey ?? null;
    this.unfinished = failure.unfinished ?? null;
  }
}

/** The error with more that is known of it; anything else as it is. */
export const amended = (error: unknown, known: Partial<Failure>): unknown =>
  error instanceof DoorplateError
    ? new DoorplateError(error.message, { ...error, ...known }, error.cause)
    : error;
