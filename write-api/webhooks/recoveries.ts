import { z } from 'zod';
import type { RequestRecovery } from '../../commands/webhooks/recover-deliveries.ts';
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
import { WEBHOOK_ROUTE } from '../../read-api/webhooks/answer.ts';
import { recoverWebhookOperation } from '../../read-api/webhooks/recovery-schemas.ts';

export interface RecoverRouteDeps {
  readonly recover: RequestRecovery;
  /** Resolves when the read models have the position, or a short time is over. */
  readonly projected: (position: Position | null) => Promise<unknown>;
}

/** POST /v1/webhooks/{webhook_id}/recover */
export function recoverRoute(deps: RecoverRouteDeps): PartnerRoute {
  const path = '/v1/webhooks/:webhook_id/recover';
  return partnerRoutes(deps, WEBHOOK_ROUTE)('POST', path, 'json', recoverWebhookOperation, recover);
}

const shape = z.strictObject({ since: z.unknown().optional() });

async function recover(deps: RecoverRouteDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_webhook_query');
  const body = shape.safeParse(request.body);
  if (!body.success) return refusal(request, 'invalid_body');
  const webhookId = uuidParam(request, 'webhook_id');
  const { partner_id } = request.caller;
  const { since } = body.data;
  const requested = await deps.recover(partner_id, webhookId, since, commandContext(request));
  if (!requested.ok) return refusal(request, requested.refusal);
  const { recovery, position } = requested.value;
  // So that the status can be read at once.
  await deps.projected(position).catch(() => undefined);
  const { recovery_id, deliveries } = recovery;
  const status_url = `/v1/webhooks/${webhookId}/recoveries/${recovery_id}`;
  return {
    status: 202,
    body: JSON.stringify({ recovery_id, deliveries, status_url, request_id: request.id }),
  };
}
