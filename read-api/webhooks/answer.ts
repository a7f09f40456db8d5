import { MANAGEMENT_BODY_LIMIT } from '../../http/contract/parameters.ts';
import type { PartnerRequest, PartnerRoute } from '../../http/contract/route.ts';
import type { DeliveryTotals, WebhookBody } from './schemas.ts';

/** What all routes under /v1/webhooks share (contract, Requests and Webhooks). */
export const WEBHOOK_ROUTE = {
  access: 'partner',
  bodyLimit: MANAGEMENT_BODY_LIMIT,
  budget: 'webhooks',
  unavailable: 'webhooks_unavailable',
} as const satisfies Partial<PartnerRoute>;

/** An endpoint, from the stream that it stands on or from the read model. */
export interface ShownEndpoint {
  readonly webhook_id: string;
  readonly name: string;
  readonly url: string;
  readonly events: readonly WebhookBody['events'][number][];
  readonly tracker_id: string | null;
  readonly enabled: boolean;
  readonly created_at: string;
  readonly updated_at: string;
  readonly deleted_at: string | null;
  readonly secret_rotation_until: string | null;
}

/** How many deliveries each of these endpoints has; one that is not named has none. */
export type TotalsOf = (webhookIds: readonly string[]) => Promise<ReadonlyMap<string, DeliveryTotals>>;

export const NO_DELIVERIES: DeliveryTotals = {
  pending: 0,
  delivered: 0,
  failed: 0,
  cancelled: 0,
  expired: 0,
};

/** An endpoint as the API shows it. */
export const webhookFields = (
  endpoint: ShownEndpoint,
  deliveries: DeliveryTotals,
  { receivedAt: now }: PartnerRequest,
): Omit<WebhookBody, 'request_id'> => {
  const until = endpoint.secret_rotation_until;
  return {
    id: endpoint.webhook_id,
    name: endpoint.name,
    url: endpoint.url,
    events: [...endpoint.events],
    tracker_id: endpoint.tracker_id,
    enabled: endpoint.enabled,
    created_at: endpoint.created_at,
    updated_at: endpoint.updated_at,
    deleted_at: endpoint.deleted_at,
    secret_rotation_until: until !== null && now < Date.parse(until) ? until : null,
    deliveries,
  };
};
