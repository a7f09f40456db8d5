import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { aheadAfter, MINUTE } from '../../domain/kernel/time.ts';
import { NO_DELIVERIES } from '../../domain/webhooks/events.ts';
import { uuidParam } from '../../http/contract/parameters.ts';
import { partnerRoutes } from '../../http/contract/partner-routes.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import type { DueDeliveries } from '../../projections/webhooks/deliveries/health-readers.ts';
import { type Endpoint, findEndpoint, listEndpoints } from '../../projections/webhooks/endpoints/readers.ts';
import type { Reads } from '../../queries/reads.ts';
import { type TotalsOf, WEBHOOK_ROUTE, webhookFields } from './answer.ts';
import {
  getWebhookOperation,
  listWebhooksOperation,
  type WebhookLimits,
  type WebhookWorker,
} from './endpoint-schemas.ts';

/** A partner's deliveries whose next attempt is due. `now` in milliseconds. */
type QueueState = (partnerId: string, now: number) => Promise<DueDeliveries>;

/** A process without a heartbeat for this long has ended. */
const GONE_MS = 5_000;
/** A delivery that is due for longer shows that no process delivers. */
const STALLED_MS = MINUTE;

const seen = z.object({ seen_at: z.string().nullable() });

/** Whether deliveries are under way. `now` in milliseconds. */
export async function workerHealth(
  { db, queueState }: { readonly db: DatabasePool; readonly queueState: QueueState },
  partnerId: string,
  now: number,
): Promise<WebhookWorker> {
  const [last_seen_at, { due, oldest_due_at }] = await Promise.all([
    db.oneFirst(sql.type(seen)`
      select max(seen_at) as seen_at from work.process
      where role in ('all', 'workers') and seen_at <= ${sql.timestamp(new Date(aheadAfter(now)))}`),
    queueState(partnerId, now),
  ]);
  const beats = last_seen_at !== null && now - Date.parse(last_seen_at) < GONE_MS;
  const waits = oldest_due_at !== null && now - Date.parse(oldest_due_at) > STALLED_MS;
  const status = beats ? (waits ? 'stalled' : 'running') : 'stopped';
  return { status, last_seen_at, due, oldest_due_at };
}

interface WebhookReadDeps extends Reads {
  readonly limits: WebhookLimits;
  readonly totalsOf: TotalsOf;
  readonly queueState: QueueState;
}

/** GET /v1/webhooks and GET /v1/webhooks/{webhook_id}. */
export function webhookReadRoutes(deps: WebhookReadDeps): PartnerRoute[] {
  const route = partnerRoutes(deps, WEBHOOK_ROUTE);
  return [
    route('GET', '/v1/webhooks', 'none', listWebhooksOperation, list),
    route('GET', '/v1/webhooks/:webhook_id', 'none', getWebhookOperation, get),
  ];
}

async function list(deps: WebhookReadDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_webhook_query');
  const { partner_id } = request.caller;
  const [rows, worker] = await Promise.all([
    listEndpoints(deps.db, partner_id),
    workerHealth(deps, partner_id, request.receivedAt),
  ]);
  const webhooks = await shown(deps, rows, request);
  return {
    status: 200,
    body: JSON.stringify({ webhooks, limits: deps.limits, worker, request_id: request.id }),
  };
}

async function get(deps: WebhookReadDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_webhook_query');
  const webhookId = uuidParam(request, 'webhook_id');
  if (webhookId === null) return refusal(request, 'webhook_not_found');
  const { partner_id } = request.caller;
  const row = await findEndpoint(deps, partner_id, webhookId, request.receivedAt);
  if (row === null) return refusal(request, 'webhook_not_found');
  const [webhook] = await shown(deps, [row], request);
  return { status: 200, body: JSON.stringify({ ...webhook, request_id: request.id }) };
}

async function shown({ totalsOf }: WebhookReadDeps, rows: readonly Endpoint[], request: PartnerRequest) {
  const totals = await totalsOf(rows.map(({ webhook_id }) => webhook_id));
  return rows.map((row) => webhookFields(row, totals.get(row.webhook_id) ?? NO_DELIVERIES, request));
}
