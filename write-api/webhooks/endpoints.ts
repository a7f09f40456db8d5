import { z } from 'zod';
import type {
  ChangedEndpoint,
  EndpointCommands,
  WithSecret,
} from '../../commands/webhooks/manage-endpoints.ts';
import type { Result } from '../../domain/kernel/decider.ts';
import type { EndpointRefusal } from '../../domain/webhooks/endpoints.ts';
import { type DeliveryTotals, NO_DELIVERIES } from '../../domain/webhooks/events.ts';
import type { Position } from '../../event-store/port.ts';
import { asUuid, isStrings, uuidParam } from '../../http/contract/parameters.ts';
import { partnerRoutes } from '../../http/contract/partner-routes.ts';
import {
  commandContext,
  type PartnerRequest,
  type PartnerRoute,
  type Reply,
} from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { type TotalsOf, WEBHOOK_ROUTE, webhookFields } from '../../read-api/webhooks/answer.ts';
import {
  createWebhookOperation,
  deleteWebhookOperation,
  rotateWebhookSecretOperation,
  updateWebhookOperation,
} from '../../read-api/webhooks/endpoint-schemas.ts';

export interface WebhookRouteDeps {
  readonly commands: EndpointCommands;
  /** Resolves when the read models have the position, or a short time is over. */
  readonly projected: (position: Position | null) => Promise<unknown>;
  /** Called after an accepted change, once `projected` has resolved: the read models may not have it yet. */
  readonly changed: (partnerId: string) => void;
  readonly totalsOf: TotalsOf;
}

/** POST, PATCH, DELETE: all that changes an endpoint. */
export function webhookRoutes(deps: WebhookRouteDeps): PartnerRoute[] {
  const route = partnerRoutes(deps, WEBHOOK_ROUTE);
  return [
    route('POST', '/v1/webhooks', 'json', createWebhookOperation, create),
    route('PATCH', '/v1/webhooks/:webhook_id', 'json', updateWebhookOperation, update),
    route('DELETE', '/v1/webhooks/:webhook_id', 'none', deleteWebhookOperation, remove),
    route('POST', '/v1/webhooks/:webhook_id/rotate-secret', 'optional', rotateWebhookSecretOperation, rotate),
  ];
}

/** What is not of its type is wrong in the field's own way (contract, Requests 7). */
const newShape = z.strictObject({
  name: z.unknown().optional(),
  url: z.unknown().optional(),
  events: z.unknown().optional(),
  tracker_id: z.unknown().optional(),
});
const names = z.custom<string[]>(isStrings);
const newFields = z.object({
  name: z.string(),
  events: names,
  tracker_id: z.preprocess((id) => (id === null ? null : (asUuid(id) ?? undefined)), z.string().nullable()),
});

async function create(deps: WebhookRouteDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_webhook_query');
  const body = newShape.safeParse(request.body);
  if (!body.success) return refusal(request, 'invalid_body');
  const { url, tracker_id = null } = body.data;
  const fields = newFields.safeParse({ ...body.data, tracker_id });
  if (!fields.success) return refusal(request, 'invalid_webhook');
  if (typeof url !== 'string') return refusal(request, 'invalid_webhook_url');
  const { partner_id } = request.caller;
  const made = await deps.commands.create(partner_id, { ...fields.data, url }, commandContext(request));
  return answer(deps, request, made, (it) => shown(request, 201, it, NO_DELIVERIES));
}

const changeShape = z.strictObject({
  name: z.unknown().optional(),
  events: z.unknown().optional(),
  enabled: z.unknown().optional(),
});
const changeFields = z.object({
  name: z.string().optional(),
  events: names.optional(),
  enabled: z.boolean().optional(),
});

async function update(deps: WebhookRouteDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_webhook_query');
  const body = changeShape.safeParse(request.body);
  if (!body.success) return refusal(request, 'invalid_body');
  const fields = changeFields.safeParse(body.data);
  if (!fields.success) return refusal(request, 'invalid_webhook');
  const { name = null, events = null, enabled = null } = fields.data;
  const webhookId = uuidParam(request, 'webhook_id');
  if (webhookId === null) return refusal(request, 'webhook_not_found');
  const { partner_id } = request.caller;
  const change = { name, events, enabled };
  const changed = await deps.commands.update(partner_id, webhookId, change, commandContext(request));
  return answer(deps, request, changed, async (it) =>
    shown(request, 200, it, await deliveriesOf(deps, webhookId)),
  );
}

async function remove(deps: WebhookRouteDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_webhook_query');
  const id = uuidParam(request, 'webhook_id');
  if (id === null) return refusal(request, 'webhook_not_found');
  const { partner_id } = request.caller;
  const deleted = await deps.commands.delete(partner_id, id, commandContext(request));
  return answer(deps, request, deleted, ({ endpoint: { deleted_at } }) => ({
    status: 200,
    body: JSON.stringify({ id, deleted: true, deleted_at, request_id: request.id }),
  }));
}

async function rotate(deps: WebhookRouteDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_webhook_query');
  const webhookId = uuidParam(request, 'webhook_id');
  if (webhookId === null) return refusal(request, 'webhook_not_found');
  // Before the rotation, because a lost new secret cannot be replaced for a day.
  const deliveries = await deliveriesOf(deps, webhookId);
  const { partner_id } = request.caller;
  const rotated = await deps.commands.rotate(partner_id, webhookId, commandContext(request));
  return answer(deps, request, rotated, (it) => shown(request, 200, it, deliveries));
}

const deliveriesOf = async ({ totalsOf }: WebhookRouteDeps, webhookId: string): Promise<DeliveryTotals> =>
  (await totalsOf([webhookId])).get(webhookId) ?? NO_DELIVERIES;

function shown(
  request: PartnerRequest,
  status: 200 | 201,
  { endpoint, ...rest }: ChangedEndpoint | WithSecret,
  deliveries: DeliveryTotals,
): Reply {
  const secret = 'signing_secret' in rest ? { signing_secret: rest.signing_secret } : {};
  const fields = webhookFields(endpoint, deliveries, request);
  return { status, body: JSON.stringify({ ...fields, ...secret, request_id: request.id }) };
}

async function answer<T extends ChangedEndpoint>(
  { projected, changed }: WebhookRouteDeps,
  request: PartnerRequest,
  result: Result<T, EndpointRefusal>,
  success: (changed: T) => Reply | Promise<Reply>,
): Promise<Reply> {
  if (!result.ok) return refusal(request, result.refusal);
  // So that the caller's next list, on whichever node, shows it; it stands whether or not that can be waited for.
  await projected(result.value.position).catch(() => undefined);
  changed(request.caller.partner_id);
  return success(result.value);
}
