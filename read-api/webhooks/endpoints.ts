import { uuidParam } from '../../http/contract/parameters.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import {
  type EndpointReads,
  type EndpointRow,
  findEndpoint,
  listEndpoints,
} from '../../queries/webhooks/endpoints.ts';
import { NO_DELIVERIES, type TotalsOf, WEBHOOK_ROUTE, webhookFields } from './answer.ts';
import { getWebhookOperation, listWebhooksOperation } from './operations.ts';
import type { WebhookLimits } from './schemas.ts';
import { type QueueState, workerHealth } from './worker.ts';

export interface WebhookReadDeps extends EndpointReads {
  readonly limits: WebhookLimits;
  readonly totalsOf: TotalsOf;
  readonly queueState: QueueState;
}

/** GET /v1/webhooks and GET /v1/webhooks/{webhook_id}. */
export const webhookReadRoutes = (deps: WebhookReadDeps): PartnerRoute[] => [
  {
    ...WEBHOOK_ROUTE,
    method: 'GET',
    path: '/v1/webhooks',
    body: 'none',
    operation: listWebhooksOperation,
    handle: (request) => list(deps, request),
  },
  {
    ...WEBHOOK_ROUTE,
    method: 'GET',
    path: '/v1/webhooks/:webhook_id',
    body: 'none',
    operation: getWebhookOperation,
    handle: (request) => get(deps, request),
  },
];

const list = async (deps: WebhookReadDeps, request: PartnerRequest): Promise<Reply> => {
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
};

const get = async (deps: WebhookReadDeps, request: PartnerRequest): Promise<Reply> => {
  if (request.query !== '') return refusal(request, 'invalid_webhook_query');
  const webhookId = uuidParam(request, 'webhook_id');
  if (webhookId === null) return refusal(request, 'webhook_not_found');
  const { partner_id } = request.caller;
  const row = await findEndpoint(deps, partner_id, webhookId, request.receivedAt);
  if (row === null) return refusal(request, 'webhook_not_found');
  const [webhook] = await shown(deps, [row], request);
  return { status: 200, body: JSON.stringify({ ...webhook, request_id: request.id }) };
};

const shown = async (
  { totalsOf }: WebhookReadDeps,
  rows: readonly EndpointRow[],
  request: PartnerRequest,
) => {
  const totals = await totalsOf(rows.map(({ webhook_id }) => webhook_id));
  return rows.map((row) => webhookFields(row, totals.get(row.webhook_id) ?? NO_DELIVERIES, request));
};
