import type { CommandContext } from '../../commands/handle.ts';
import type { ProjectedDelivery, RetryRefusal } from '../../commands/webhooks/retry-deliveries.ts';
import type { SendTest } from '../../commands/webhooks/send-test.ts';
import type { Result } from '../../domain/kernel/decider.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import type { Position } from '../../event-store/port.ts';
import { uuidParam } from '../../http/contract/parameters.ts';
import { partnerRoutes } from '../../http/contract/partner-routes.ts';
import {
  commandContext,
  type PartnerRequest,
  type PartnerRoute,
  type Reply,
} from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { type Delivery, deliveryAnswer, WEBHOOK_ROUTE } from '../../read-api/webhooks/answer.ts';
import { retryDeliveryOperation } from '../../read-api/webhooks/delivery-schemas.ts';
import { testWebhookOperation } from '../../read-api/webhooks/endpoint-schemas.ts';

export interface WebhookTestDeps {
  readonly sendTest: SendTest;
  /** Resolves when the read models have the position, or a short time is over. */
  readonly projected: (position: Position | null) => Promise<unknown>;
}

/** POST /v1/webhooks/{webhook_id}/test */
export function webhookTestRoute(deps: WebhookTestDeps): PartnerRoute {
  const route = partnerRoutes(deps, WEBHOOK_ROUTE);
  return route('POST', '/v1/webhooks/:webhook_id/test', 'optional', testWebhookOperation, test);
}

async function test({ sendTest, projected }: WebhookTestDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_webhook_query');
  const webhookId = uuidParam(request, 'webhook_id');
  if (webhookId === null) return refusal(request, 'webhook_not_found');
  const { partner_id } = request.caller;
  const sent = await sendTest(partner_id, webhookId, commandContext(request));
  if (!sent.ok) return refusal(request, sent.refusal);
  const { delivery_id, event_id, position } = sent.value;
  // So that the caller's next read of the history shows it.
  await projected(position).catch(() => undefined);
  const body = { delivery_id, event_id, status: 'pending', request_id: request.id };
  return { status: 202, body: JSON.stringify(body) };
}

export interface RetryRouteDeps {
  /** Finds a delivery of one of the partner's endpoints, deleted ones too. `now` in milliseconds. */
  readonly find: (
    partnerId: string,
    webhookId: string,
    deliveryId: string,
    now: number,
  ) => Promise<Delivery | 'webhook_not_found' | 'webhook_delivery_not_found'>;
  readonly retry: (
    delivery: ProjectedDelivery,
    context: CommandContext,
  ) => Promise<Result<{ readonly position: Position | null } | 'unchanged', RetryRefusal>>;
  /** Resolves when the read models have the position, or a short time is over. */
  readonly projected: (position: Position | null) => Promise<unknown>;
  /** Loads the body of an event; null: expired or unreadable. */
  readonly bodyOf: (eventId: string) => Promise<Buffer | null>;
}

/** POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry */
export function retryDeliveryRoute(deps: RetryRouteDeps): PartnerRoute {
  const path = '/v1/webhooks/:webhook_id/deliveries/:delivery_id/retry';
  return partnerRoutes(deps, WEBHOOK_ROUTE)('POST', path, 'optional', retryDeliveryOperation, retry);
}

async function retry(deps: RetryRouteDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_webhook_query');
  const webhookId = uuidParam(request, 'webhook_id');
  if (webhookId === null) return refusal(request, 'webhook_not_found');
  const deliveryId = uuidParam(request, 'delivery_id');
  if (deliveryId === null) return refusal(request, 'webhook_delivery_not_found');
  const { partner_id } = request.caller;
  const find = () => deps.find(partner_id, webhookId, deliveryId, request.receivedAt);
  const known = await find();
  if (typeof known === 'string') return refusal(request, known);
  const retried = await deps.retry(known, commandContext(request));
  if (!retried.ok) return refusal(request, retried.refusal);
  if (retried.value === 'unchanged') return answer(deps, request, known);
  // The retry has begun, also if the read models lag.
  await deps.projected(retried.value.position).catch(() => undefined);
  const now = await find().catch(() => known);
  const isApplied = typeof now !== 'string' && now.cycle > known.cycle;
  return answer(deps, request, isApplied ? now : { ...known, ...begun(request) });
}

/** The fields that the read models will have. */
const begun = ({ receivedAt }: PartnerRequest) => ({
  state: 'pending' as const,
  delivered_at: null,
  next_attempt_at: isoTime(receivedAt),
});

const answer = async (
  { bodyOf }: RetryRouteDeps,
  request: PartnerRequest,
  delivery: Delivery,
): Promise<Reply> => deliveryAnswer(request, delivery, await bodyOf(delivery.event_id));
