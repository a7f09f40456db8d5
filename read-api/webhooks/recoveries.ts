import { sql } from 'slonik';
import { z } from 'zod';
import { uuidParam } from '../../http/contract/parameters.ts';
import { partnerRoutes } from '../../http/contract/partner-routes.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { columnsOf, type Reads, readUpToDate } from '../../queries/reads.ts';
import { WEBHOOK_ROUTE } from './answer.ts';
import { findEndpoint } from './endpoints.ts';
import { getRecoveryOperation, type RecoveryBody } from './recovery-schemas.ts';

const recoveryRow = z.object({
  recovery_id: z.string(),
  since: z.string(),
  deliveries: z.number(),
  created_at: z.string(),
  completed_at: z.string().nullable(),
  pending: z.number(),
  delivered: z.number(),
  failed: z.number(),
  cancelled: z.number(),
  expired: z.number(),
});
type RecoveryRow = z.output<typeof recoveryRow>;

const columns = columnsOf(recoveryRow);

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

/** Until it ends, those that were counted at the request and are not due yet appear as pending. */
function fieldsOf(row: RecoveryRow, isDeleted: boolean): Omit<RecoveryBody, 'request_id'> {
  const { recovery_id, since, created_at, delivered, failed, expired } = row;
  const due = row.pending + delivered + failed + row.cancelled + expired;
  const deliveries = row.completed_at === null ? Math.max(row.deliveries, due) : due;
  const waiting = row.pending + deliveries - due;
  const cancelled = row.cancelled + (isDeleted ? waiting : 0);
  const pending = isDeleted ? 0 : waiting;
  return { recovery_id, since, deliveries, pending, delivered, failed, cancelled, expired, created_at };
}

const findRecovery = (reads: Reads, webhookId: string, recoveryId: string): Promise<RecoveryRow | null> =>
  readUpToDate(reads, () =>
    reads.db.maybeOne(sql.type(recoveryRow)`
      select ${columns} from read.webhook_recovery
      where recovery_id = ${recoveryId} and webhook_id = ${webhookId}`),
  );
