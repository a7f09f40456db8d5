import type { DeliveryError } from '../../domain/webhooks/events.ts';

interface AttemptFailureOptions extends ErrorOptions {
  readonly handshakeMs?: number;
}

/** An attempt that ended without a response. */
export class AttemptFailure extends Error {
  readonly kind: DeliveryError;
  /** Event loop time of a failed TLS handshake, milliseconds. */
  readonly handshakeMs: number;
  constructor(kind: DeliveryError, { handshakeMs = 0, ...options }: AttemptFailureOptions = {}) {
    super(kind, options);
    this.kind = kind;
    this.handshakeMs = handshakeMs;
  }
}
