import type { DeliveryError } from '../../domain/webhooks/events.ts';

interface AttemptFailureOptions extends ErrorOptions {
  readonly handshakeMs?: number;
}

/** Why an attempt ended without an answer. */
export class AttemptFailure extends Error {
  readonly kind: DeliveryError;
  /** How long a TLS handshake that failed has kept the event loop busy, milliseconds. */
  readonly handshakeMs: number;
  constructor(kind: DeliveryError, { handshakeMs = 0, ...options }: AttemptFailureOptions = {}) {
    super(kind, options);
    this.kind = kind;
    this.handshakeMs = handshakeMs;
  }
}
