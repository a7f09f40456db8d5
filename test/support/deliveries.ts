/** Events of endpoints and deliveries for tests below the HTTP level. */

import { randomUUID } from 'node:crypto';
import { DAY, isoTime } from '../../domain/kernel/time.ts';
import {
  type DeliveryError,
  type DeliveryEvent,
  type EndpointChangeEvent,
  resultOf,
} from '../../domain/webhooks/events.ts';
import type { SuspensionEvent } from '../../projections/webhooks/deliveries/health.ts';

export interface TestEndpoint {
  readonly webhook_id: string;
  readonly partner_id: string;
}

export interface TestDelivery extends TestEndpoint {
  readonly delivery_id: string;
  readonly event_id: string;
}

export const anEndpoint = (partner_id: string = randomUUID()): TestEndpoint => ({
  webhook_id: randomUUID(),
  partner_id,
});

export const aDelivery = ({ webhook_id, partner_id }: TestEndpoint): TestDelivery => ({
  webhook_id,
  partner_id,
  delivery_id: randomUUID(),
  event_id: `evt_session_${randomUUID()}`,
});

const idsOf = ({ delivery_id, webhook_id, partner_id }: TestDelivery) => ({
  delivery_id,
  webhook_id,
  partner_id,
});

export const created = (of: TestEndpoint, at: number): EndpointChangeEvent => ({
  type: 'webhooks.EndpointCreated.v1',
  data: {
    ...of,
    name: 'endpoint',
    url: 'https://hooks.example.com/',
    events: ['session.created'],
    tracker_id: null,
    secret: { master_key_id: 'k', sealed: '' },
    created_at: isoTime(at),
  },
});

export const enabled = (of: TestEndpoint, is: boolean, at: number): EndpointChangeEvent => ({
  type: 'webhooks.EndpointUpdated.v1',
  data: { ...of, name: 'endpoint', events: ['session.created'], enabled: is, updated_at: isoTime(at) },
});

export const removed = (of: TestEndpoint, at: number): EndpointChangeEvent => ({
  type: 'webhooks.EndpointDeleted.v1',
  data: { ...of, deleted_at: isoTime(at) },
});

export const suspended = ({ partner_id }: TestEndpoint, at: number): SuspensionEvent => ({
  type: 'partners.PartnerSuspended.v1',
  data: { partner_id, suspended_at: isoTime(at) },
});

export const resumed = ({ partner_id }: TestEndpoint, at: number): SuspensionEvent => ({
  type: 'partners.PartnerResumed.v1',
  data: { partner_id, resumed_at: isoTime(at) },
});

export const partnerDeleted = ({ partner_id }: TestEndpoint, at: number): SuspensionEvent => ({
  type: 'partners.PartnerDeleted.v1',
  data: { partner_id, deleted_at: isoTime(at) },
});

export const queued = (of: TestDelivery, at: number, source: string | null = null): DeliveryEvent => ({
  type: 'webhooks.DeliveryQueued.v1',
  data: {
    ...idsOf(of),
    event_id: of.event_id,
    type: 'session.created',
    created_at: isoTime(at),
    payload_expires_at: isoTime(at + 30 * DAY),
    source_position: source,
    newest_secret_only: false,
  },
});

export interface Attempt {
  readonly cycle?: number;
  readonly attempt?: number;
  readonly at: number;
  readonly error?: DeliveryError | null;
  readonly final?: boolean;
}

/** A failed one is retried a minute later unless it is `final`. */
export const attempted = (of: TestDelivery, made: Attempt): DeliveryEvent => {
  const { cycle = 1, attempt = 1, at, error = null, final = false } = made;
  const state = error === null ? 'delivered' : final ? 'failed' : 'pending';
  return {
    type: 'webhooks.DeliveryAttempted.v1',
    data: {
      ...idsOf(of),
      cycle,
      attempt,
      started_at: isoTime(at - 100),
      ended_at: isoTime(at),
      state,
      ...resultOf({ http_status: error === null ? 200 : error === 'http_status' ? 500 : null, error }),
      signed_by: 'newest',
      next_attempt_at: state === 'pending' ? isoTime(at + 60_000) : null,
    },
  };
};

export const retried = (of: TestDelivery, cycle: number, at: number): DeliveryEvent => ({
  type: 'webhooks.DeliveryRetried.v1',
  data: { ...idsOf(of), cycle, retried_at: isoTime(at) },
});

export const expired = (of: TestEndpoint, deliveries: readonly TestDelivery[]): DeliveryEvent => ({
  type: 'webhooks.DeliveriesExpired.v1',
  data: {
    webhook_id: of.webhook_id,
    partner_id: of.partner_id,
    delivery_ids: deliveries.map(({ delivery_id }) => delivery_id),
  },
});

export interface TestRecovery {
  readonly recovery_id: string;
  readonly since: number;
}

export const aRecovery = (since: number): TestRecovery => ({ recovery_id: randomUUID(), since });

export const recoveryRequested = (
  of: TestEndpoint,
  { recovery_id, since }: TestRecovery,
  at: number,
  over: { readonly deliveries?: number; readonly held_back?: boolean } = {},
): EndpointChangeEvent => ({
  type: 'webhooks.RecoveryRequested.v1',
  data: {
    ...{ webhook_id: of.webhook_id, partner_id: of.partner_id, recovery_id, since: isoTime(since) },
    ...{ deliveries: 0, held_back: false, ...over },
    requested_at: isoTime(at),
  },
});

export const recoveryCompleted = (
  of: TestEndpoint,
  { recovery_id }: TestRecovery,
  at: number,
): EndpointChangeEvent => ({
  type: 'webhooks.RecoveryCompleted.v1',
  data: { webhook_id: of.webhook_id, partner_id: of.partner_id, recovery_id, completed_at: isoTime(at) },
});

/** Each delivery with the cycle that it begins. */
export const retriedAll = (
  of: TestEndpoint,
  { recovery_id, since }: TestRecovery,
  deliveries: readonly (readonly [TestDelivery, cycle: number])[],
  at: number,
): DeliveryEvent => ({
  type: 'webhooks.DeliveriesRetried.v1',
  data: {
    ...{ webhook_id: of.webhook_id, partner_id: of.partner_id, recovery_id, since: isoTime(since) },
    ...{ requested_at: isoTime(at), retried_at: isoTime(at) },
    deliveries: deliveries.map(([{ delivery_id }, cycle]) => [delivery_id, cycle]),
  },
});
