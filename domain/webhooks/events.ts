import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';
import { DAY } from '../kernel/time.ts';

const instant = z.iso.datetime();

/** What an endpoint may subscribe to (spec, WebhookCreate). */
export const subscribableSchema = z.enum(['session.created', 'reveal.completed']);
export type Subscribable = z.output<typeof subscribableSchema>;

/** A signing secret, sealed under the master key that `master_key_id` names, bound to the endpoint's id. */
export const sealedSecretSchema = z.object({ master_key_id: z.string(), sealed: z.string() });
export type SealedSecret = z.output<typeof sealedSecretSchema>;

const ids = { webhook_id: z.uuid(), partner_id: z.uuid() } as const;

/** Stream `webhooks-<partner>`: the lives of all endpoints of a partner. */
export const webhookEvents = {
  'webhooks.EndpointCreated.v1': z.object({
    ...ids,
    name: z.string(),
    url: z.string(),
    events: z.array(subscribableSchema),
    /** null: all trackers of the partner. */
    tracker_id: z.uuid().nullable(),
    secret: sealedSecretSchema,
    created_at: instant,
  }),
  /** What it says from then on; events that are queued keep what they were queued with. */
  'webhooks.EndpointUpdated.v1': z.object({
    ...ids,
    name: z.string(),
    events: z.array(subscribableSchema),
    enabled: z.boolean(),
    updated_at: instant,
  }),
  /** The secret before it signs as well until `rotation_until`. */
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
} as const;
export type WebhookEvent = EventOf<typeof webhookEvents>;

/** All that stands in such a stream. */
export const endpointEvents = {
  ...webhookEvents,
  /**
   * The fold at this revision: endpoints that were deleted last come first, in the order of their deletion. What stands
   * before it may be gone; an endpoint that it leaves out, and that was deleted 90 days before, is forgotten.
   */
  'webhooks.EndpointsSnapshotted.v1': z.object({
    endpoints: z.array(
      z.object({
        webhook_id: z.uuid(),
        name: z.string(),
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

/** A deleted endpoint is told of for so long, milliseconds (decisions, Webhooks). */
export const DELETED_KEPT_MS = 90 * DAY;

/** What reaches a receiver (spec, Event kinds). */
export const deliveredTypeSchema = z.enum(['session.created', 'reveal.completed', 'webhook.test']);
export type DeliveredType = z.output<typeof deliveredTypeSchema>;

/** Stream `payload-<event id>`: one body, serialised once, for every endpoint and attempt. */
export const payloadEvents = {
  'webhooks.PayloadStored.v1': z.object({
    event_id: z.string(),
    partner_id: z.uuid(),
    type: deliveredTypeSchema,
    /** UTC day whose key sealed the body, bound to the event's id. */
    day: z.iso.date(),
    /** The body's bytes, sealed, in base64. */
    sealed: z.string(),
    /** Length of the body. */
    bytes: z.int(),
    created_at: instant,
    /** The session's own. */
    expires_at: instant,
  }),
} as const;
export type PayloadEvent = EventOf<typeof payloadEvents>;

/** Why an attempt did not succeed. */
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

const ofDelivery = { delivery_id: z.uuid(), webhook_id: z.uuid(), partner_id: z.uuid() } as const;

/**
 * Stream `deliveries-<webhook>-<utc day of the delivery's creation>`: what became of an endpoint's deliveries. Any of these
 * may stand there twice: the first of a delivery, of a cycle, of an attempt counts.
 */
export const deliveryEvents = {
  'webhooks.DeliveryQueued.v1': z.object({
    ...ofDelivery,
    event_id: z.string(),
    type: deliveredTypeSchema,
    created_at: instant,
    payload_expires_at: instant,
    /** Log position of what it tells of; null for a test. */
    source_position: z.string().nullable(),
  }),
  'webhooks.DeliveryAttempted.v1': z.object({
    ...ofDelivery,
    /** 1 for the first, one more with each manual retry. */
    cycle: z.int(),
    /** 1 for the first of its cycle. */
    attempt: z.int(),
    started_at: instant,
    ended_at: instant,
    state: z.enum(['delivered', 'pending', 'failed']),
    /** null: the receiver did not answer. */
    http_status: z.int().nullable(),
    /** null: it was delivered. */
    error: deliveryErrorSchema.nullable(),
    /** null unless it stays pending. */
    next_attempt_at: instant.nullable(),
  }),
  'webhooks.DeliveryRetried.v1': z.object({ ...ofDelivery, cycle: z.int(), retried_at: instant }),
  'webhooks.DeliveriesExpired.v1': z.object({
    webhook_id: z.uuid(),
    partner_id: z.uuid(),
    delivery_ids: z.array(z.uuid()),
  }),
} as const;
export type DeliveryEvent = EventOf<typeof deliveryEvents>;

/** So many failed attempts in a row, and an endpoint's breaker holds until one succeeds (decisions, Webhooks). */
export const HELD_AFTER = 10;

export const PAYLOAD_PREFIX = 'payload-';
export const DELIVERIES_PREFIX = 'deliveries-';

/** Stream `expired-<partner>-<utc day>`, with the sessions that expired. */
export const payloadExpiryEvents = {
  'webhooks.PayloadsExpired.v1': z.object({
    partner_id: z.uuid(),
    /** Event id, and when its body expired. */
    events: z.array(z.tuple([z.string(), instant])),
  }),
} as const;
