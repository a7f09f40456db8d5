import type { DeliveryError } from '../../domain/webhooks/events.ts';

/** Why an attempt ended without an answer. */
export class AttemptFailure extends Error {
  readonly kind: DeliveryError;
  constructor(kind: DeliveryError, options?: ErrorOptions) {
    super(kind, options);
    this.kind = kind;
  }
}
