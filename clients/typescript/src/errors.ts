import type { ErrorBody, ErrorCode, Lookup, Pending, Reveal } from './generated.ts';
import type { OperationId } from './operations.ts';

/**
 * - `answer`: the service, or a proxy before it, answered with an error, or with a body outside the API
 * - `network`: no connection, or it broke
 * - `timeout`: one attempt took longer than `timeoutMs`
 * - `deadline`: a call that polls took longer than `deadlineMs`, or would have to
 * - `aborted`: your signal ended the call; `cause` is its reason
 */
export type FailureKind = 'answer' | 'network' | 'timeout' | 'deadline' | 'aborted';

/** The known facts of a failed call. */
export interface Failure {
  readonly kind: FailureKind;
  /**
   * `refused`: the service refused, and nothing was done. `unknown`: it may have been done, or be in progress.
   * Neither means "no company".
   */
  readonly outcome: 'refused' | 'unknown';
  readonly operation: OperationId;
  /** Of the response; null without one. */
  readonly status?: number | null;
  /** One of the error catalog, or a newer one; null when the response has none, as a proxy's. */
  readonly code?: ErrorCode | (string & {}) | null;
  /** For a report to the service's operator; null without a response of the service. */
  readonly requestId?: string | null;
  /** The delay that the service asks for; null: none given. */
  readonly retryAfterSeconds?: number | null;
  /** The response, when it is the API's `Error`. */
  readonly body?: ErrorBody | null;
  /** Of a reveal: reveal again with it to continue the same reveal. */
  readonly idempotencyKey?: string | null;
  /** Of a call that polls: the last response. The work continues without the caller. */
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

/** Adds facts to a DoorplateError; returns any other error unchanged. */
export const amended = (error: unknown, known: Partial<Failure>): unknown =>
  error instanceof DoorplateError
    ? new DoorplateError(error.message, { ...error, ...known }, error.cause)
    : error;
