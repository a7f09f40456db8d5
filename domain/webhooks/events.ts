import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';
import { DAY } from '../kernel/time.ts';
import { secretText, shownText } from '../kernel/visibility.ts';

const instant = z.iso.datetime();

/** Events that an endpoint may subscribe to (contract, Webhooks 2). */
export const subscribableSchema = z.enum(['session.created', 'reveal.completed']);
export type Subscribable = z.output<typeof subscribableSchema>;

/** A signing secret, sealed under the master key that `master_key_id` names, bound to the endpoint's id. */
export const sealedSecretSchema = z.object({ master_key_id: secretText(), sealed: secretText() });
export type SealedSecret = z.output<typeof sealedSecretSchema>;

const ids = { webhook_id: z.uuid(), partner_id: z.uuid() } as const;

const recovery = {
  recovery_id: z.uuid(),
  /** The recovery covers deliveries whose `created_at` is not before this time. */
  since: instant,
  /** Number of deliveries that the recovery covers, as counted when it was requested. */
  deliveries: z.int(),
  /** Whether the endpoint's breaker was open, so that each pending delivery waited behind it. */
  held_back: z.boolean(),
} as const;

/** Changes of one endpoint, in the stream `webhooks-<partner>`, which holds all endpoints of a partner. */
export const endpointChangeEvents = {
  'webhooks.EndpointCreated.v1': z.object({
    ...ids,
    name: shownText(),
    url: z.string(),
    events: z.array(subscribableSchema),
    /** null: all trackers of the partner. */
    tracker_id: z.uuid().nullable(),
    secret: sealedSecretSchema,
    created_at: instant,
  }),
  /** Applies to events from now on; queued deliveries keep their body. `enabled: false` pauses the endpoint. Its URL never changes. */
  'webhooks.EndpointUpdated.v1': z.object({
    ...ids,
    name: shownText(),
    events: z.array(subscribableSchema),
    enabled: z.boolean(),
    updated_at: instant,
  }),
  /** The previous secret also signs until `rotation_until`. */
  'webhooks.SecretRotated.v1': z.object({
    ...ids,
    secret: sealedSecretSchema,
    rotated_at: instant,
    rotation_until: instant,
  }),
  /** The same secrets under another master key. */
  'webhooks.SecretsResealed.v1': z.object({
    ...ids,
    secret: sealedSecretSchema,
    previous: sealedSecretSchema.nullable(),
  }),
  'webhooks.EndpointDeleted.v1': z.object({ ...ids, deleted_at: instant }),
  /** A partner wants deliveries retried that failed or wait since an outage: a processor makes them due and completes the recovery. */
  'webhooks.RecoveryRequested.v1': z.object({ ...ids, ...recovery, requested_at: instant }),
  /** The recovery has ended: none of its deliveries is pending, or the endpoint was paused or deleted. */
  'webhooks.RecoveryCompleted.v1': z.object({ ...ids, recovery_id: z.uuid(), completed_at: instant }),
} as const;
export type EndpointChangeEvent = EventOf<typeof endpointChangeEvents>;

/** All events of a stream `webhooks-<partner>`: changes and snapshots. */
export const endpointEvents = {
  ...endpointChangeEvents,
  /**
   * Snapshot of the state, with recently deleted endpoints first, in the order of deletion. Earlier events may be truncated.
   * An endpoint that was deleted 90 days earlier and is not in the snapshot is forgotten.
   */
  'webhooks.EndpointsSnapshotted.v1': z.object({
    endpoints: z.array(
      z.object({
        webhook_id: z.uuid(),
        name: shownText(),
        url: z.string(),
        events: z.array(subscribableSchema),
        tracker_id: z.uuid().nullable(),
        enabled: z.boolean(),
        created_at: instant,
        updated_at: instant,
        deleted_at: instant.nullable(),
        secret: sealedSecretSchema,
        previous: sealedSecretSchema.nullable(),
        secret_rotation_until: instant.nullable(),
        /** The last one; null in snapshots of earlier releases. */
        recovery: z
          .object({ ...recovery, requested_at: instant, completed_at: instant.nullable() })
          .nullable()
          .default(null),
      }),
    ),
  }),
} as const;
export type EndpointEvent = EventOf<typeof endpointEvents>;
export type SnapshottedEndpoint = Extract<
  EndpointEvent,
  { type: 'webhooks.EndpointsSnapshotted.v1' }
>['data']['endpoints'][number];

export const WEBHOOKS_PREFIX = 'webhooks-';

/** Retention of delivery metadata, and of deleted endpoints, milliseconds (contract, Webhooks 6). */
export const WEBHOOK_HISTORY_MS = 90 * DAY;

/** Types of delivered events (contract, Webhooks 2). */
export const deliveredTypeSchema = z.enum(['session.created', 'reveal.completed', 'webhook.test']);
export type DeliveredType = z.output<typeof deliveredTypeSchema>;

/** Stream `payload-<event id>`: one body, serialised once for all endpoints and attempts. */
export const payloadEvents = {
  'webhooks.PayloadStored.v1': z.object({
    event_id: shownText(),
    partner_id: z.uuid(),
    type: deliveredTypeSchema,
    /** UTC day whose key sealed the body, bound to the event's id. */
    day: z.iso.date(),
    /** The sealed body in base64. */
    sealed: z.string(),
    /** Length of the body. */
    bytes: z.int(),
    created_at: instant,
    /** The session's expiry; of a test, 30 days after it. */
    expires_at: instant,
  }),
} as const;
export type PayloadEvent = EventOf<typeof payloadEvents>;

/** The body of a webhook event, sealed with the key of a UTC day. It never changes. */
export interface SealedBody {
  readonly event_id: string;
  /** `YYYY-MM-DD`. */
  readonly day: string;
  readonly sealed: Buffer;
  readonly expires_at: Date;
}

/**
 * Why an attempt failed. Decided in `processors/webhooks/delivery/`: `redirect` and `http_status` by the response's status; the
 * others are kinds of `AttemptFailure`, and `connect` is every other error.
 */
export const deliveryErrorSchema = z.enum([
  'timeout',
  'dns',
  'connect',
  'tls',
  'blocked_address',
  'redirect',
  'http_status',
  'own_origin',
]);
export type DeliveryError = z.output<typeof deliveryErrorSchema>;

/**
 * Result of an attempt. Each of these fields stands in the event, in columns of the delivery (of its last attempt) and in its earlier
 * attempts, and is shown to partners by the API and the dashboard. A new field is nullable with the default null.
 */
export const attemptResult = {
  http_status: z
    .int()
    .nullable()
    .meta({ description: 'Of the last attempt; null: the receiver did not answer.' }),
  error: deliveryErrorSchema.nullable().meta({ description: 'Why the last attempt did not succeed.' }),
} as const;
export type AttemptResult = {
  readonly [Field in keyof typeof attemptResult]: z.output<(typeof attemptResult)[Field]>;
};

/** The result that examples show. */
export const FAILED_RESULT: AttemptResult = { http_status: 503, error: 'http_status' };

/** Returns the result alone; null for what an earlier release did not record. */
export const resultOf = (attempt: Partial<AttemptResult>): AttemptResult =>
  Object.fromEntries(
    Object.keys(attemptResult).map((field) => [field, attempt[field as keyof AttemptResult] ?? null]),
  ) as unknown as AttemptResult;

/** An attempt at a delivery. */
export interface Attempt extends AttemptResult {
  readonly started_at: string;
  /** null: an earlier release recorded it. */
  readonly duration_ms: number | null;
}

/** The states of a delivery as partners see them (contract, Webhooks 6): `cancelled` is no stored state. */
export const deliveryStateSchema = z.enum(['pending', 'delivered', 'failed', 'cancelled', 'expired']);
export type DeliveryState = z.output<typeof deliveryStateSchema>;

/** Number of an endpoint's deliveries by state. */
export type DeliveryTotals = Readonly<Record<DeliveryState, number>>;
export const NO_DELIVERIES: DeliveryTotals = {
  pending: 0,
  delivered: 0,
  failed: 0,
  cancelled: 0,
  expired: 0,
};

/** The secrets that sign an attempt: the newest alone, or with the one before it while a rotation's overlap runs. */
export const signedBySchema = z.enum(['newest', 'newest_and_previous']);
export type SignedBy = z.output<typeof signedBySchema>;

/** The number of deliveries in all states. */
export const totalOf = ({ pending, delivered, failed, cancelled, expired }: DeliveryTotals): number =>
  pending + delivered + failed + cancelled + expired;

const ofDelivery = { delivery_id: z.uuid(), webhook_id: z.uuid(), partner_id: z.uuid() } as const;

/** The ids that identify a delivery. */
export type DeliveryRef = Readonly<Record<keyof typeof ofDelivery, string>>;

/**
 * Stream `deliveries-<webhook>-<utc day of created_at>`: an endpoint's deliveries. Events may repeat: only the first of a
 * delivery, of a cycle, of an attempt counts.
 */
export const deliveryEvents = {
  'webhooks.DeliveryQueued.v1': z.object({
    ...ofDelivery,
    event_id: shownText(),
    type: deliveredTypeSchema,
    /** The envelope's `created_at`: the time of the event, not of queueing. */
    created_at: instant,
    payload_expires_at: instant,
    /** Log position of the event behind the notification; null for a test. */
    source_position: shownText().nullable(),
    /**
     * Whether the newest secret alone signs, also while two do otherwise: the test of a rotation. Its attempts count for no circuit
     * breaker. Release 0.2.0 passes over it and signs by both.
     */
    newest_secret_only: z.boolean().default(false),
  }),
  'webhooks.DeliveryAttempted.v1': z.object({
    ...ofDelivery,
    /** Starts at 1; each retry by hand or by a recovery adds one. */
    cycle: z.int(),
    /** Starts at 1 in each cycle. */
    attempt: z.int(),
    started_at: instant,
    ended_at: instant,
    state: z.enum(['delivered', 'pending', 'failed']),
    ...attemptResult,
    /** The secrets that signed it; null: release 0.2.0 sent it. */
    signed_by: signedBySchema.nullable().default(null),
    /** null unless the delivery stays pending. */
    next_attempt_at: instant.nullable(),
  }),
  'webhooks.DeliveryRetried.v1': z.object({ ...ofDelivery, cycle: z.int(), retried_at: instant }),
  /** A recovery retries these deliveries. It repeats the recovery's data, because the endpoint's stream may be truncated before them. */
  'webhooks.DeliveriesRetried.v1': z.object({
    webhook_id: z.uuid(),
    partner_id: z.uuid(),
    recovery_id: z.uuid(),
    since: instant,
    requested_at: instant,
    retried_at: instant,
    /** Delivery and the cycle that it begins; one that is due already begins none. */
    deliveries: z.array(z.tuple([z.uuid(), z.int()])),
  }),
  /** The bodies of these deliveries, in any state, are gone: the session has expired, or its day key was destroyed too early. */
  'webhooks.DeliveriesExpired.v1': z.object({
    webhook_id: z.uuid(),
    partner_id: z.uuid(),
    delivery_ids: z.array(z.uuid()),
  }),
} as const;
export type DeliveryEvent = EventOf<typeof deliveryEvents>;

/** Failed attempts in a row that open an endpoint's circuit breaker until one succeeds. */
export const BREAKER_OPENS_AFTER = 10;

export const PAYLOAD_PREFIX = 'payload-';
export const DELIVERIES_PREFIX = 'deliveries-';

/** Stream `expired-<partner>-<utc day>`, with the sessions that expired. */
export const payloadExpiryEvents = {
  'webhooks.PayloadsExpired.v1': z.object({
    partner_id: z.uuid(),
    /** Event id and time of expiry of its body. */
    events: z.array(z.tuple([shownText(), instant])),
    /** Why the bodies ended before their time, such as an erasure; absent: they ended at their time. */
    reason: shownText().optional(),
  }),
} as const;
