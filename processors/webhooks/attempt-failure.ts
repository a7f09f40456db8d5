import type { DeliveryError } from '../../domain/webhooks/events.ts';

interface AttemptFailureOptions extends ErrorOptions {
  readonly costMs?: number;
}

/** An attempt that ended without a response. */
export class AttemptFailure extends Error {
  readonly kind: DeliveryError;
  /** Event loop time of a failed TLS handshake, milliseconds. */
  readonly costMs: number;
  constructor(kind: DeliveryError, { costMs = 0, ...options }: AttemptFailureOptions = {}) {
    super(kind, options);
    this.kind = kind;
    this.costMs = costMs;
  }
}
