/** A client for Doorplate: calls of its API with a partner's key, and verification of its webhooks. */
export { type Client, createClient, type SessionsOptions } from './client.ts';
export { DoorplateError, type Failure, type FailureKind } from './errors.ts';
export type { Feed, Page } from './feed.ts';
export type * from './generated.ts';
export type {
  LedgerDifference,
  LedgerFault,
  LedgerOptions,
  LedgerProof,
  VerifyLedgerOptions,
} from './ledger.ts';
export type { LookedUp } from './lookup-attempt.ts';
export type { LookupMany, LookupManyOptions, LookupProgress } from './lookup-many.ts';
export type { OperationId } from './operations.ts';
export type { CallOptions, ClientOptions, PollOptions } from './options.ts';
export { type LookupOptions, newIdempotencyKey, type Revealed, type RevealOptions } from './poll.ts';
export type { Time } from './time.ts';
export type { DateRange, Domains, Trackers } from './trackers.ts';
export {
  verifyWebhook,
  type WebhookFault,
  type WebhookHeaders,
  type WebhookRequest,
  WebhookVerificationError,
} from './verify-webhook.ts';
export type { DeliveriesOptions, Webhooks } from './webhooks.ts';
