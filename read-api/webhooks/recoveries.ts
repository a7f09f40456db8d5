import { totalOf } from '../../domain/webhooks/events.ts';
import { uuidParam } from '../../http/contract/parameters.ts';
import { partnerRoutes } from '../../http/contract/partner-routes.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { findRecovery, type Recovery } from '../../projections/webhooks/deliveries/recovery-readers.ts';
import { findEndpoint } from '../../projections/webhooks/endpoints/readers.ts';
import type { Reads } from '../../queries/reads.ts';
import { WEBHOOK_ROUTE } from './answer.ts';
import { getRecoveryOperation, type RecoveryBody } from './recovery-schemas.ts';

/** GET /v1/webhooks/{webhook_id}/recoveries/{recovery_id} */
export function recoveryReadRoute(reads: Reads): PartnerRoute {
  const path = '/v1/webhooks/:webhook_id/recoveries/:recovery_id';
  return partnerRoutes(reads, WEBHOOK_ROUTE)('GET', path, 'none', getRecoveryOperation, get);
}

async function get(reads: Reads, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_webhook_query');
  const webhookId = uuidParam(request, 'webhook_id');
  if (webhookId === null) return refusal(request, 'webhook_not_found');
  const { partner_id } = request.caller;
  const endpoint = await findEndpoint(reads, partner_id, webhookId, request.receivedAt);
  if (endpoint === null) return refusal(request, 'webhook_not_found');
  const recoveryId = uuidParam(request, 'recovery_id');
  const row = recoveryId === null ? null : await findRecovery(reads, webhookId, recoveryId);
  if (row === null) return refusal(request, 'webhook_delivery_not_found');
  const body: RecoveryBody = { ...fieldsOf(row, endpoint.deleted_at !== null), request_id: request.id };
  return { status: 200, body: JSON.stringify(body) };
}

/**
 * The number that was told at the request stays. Of those deliveries, what is not due yet appears as pending while the recovery runs,
 * and as cancelled once it has ended without them.
 */
function fieldsOf(row: Recovery, isDeleted: boolean): Omit<RecoveryBody, 'request_id'> {
  const { recovery_id, since, created_at, delivered, failed, expired } = row;
  const due = totalOf(row);
  const deliveries = Math.max(row.deliveries, due);
  const untaken = deliveries - due;
  const waiting = row.pending + (row.completed_at === null ? untaken : 0);
  const pending = isDeleted ? 0 : waiting;
  const cancelled = row.cancelled + row.pending + untaken - pending;
  return { recovery_id, since, deliveries, pending, delivered, failed, cancelled, expired, created_at };
}
