import type { SendTest } from '../../commands/webhooks/send-test.ts';
import type { Position } from '../../event-store/port.ts';
import { uuidParam } from '../../http/contract/parameters.ts';
import {
  commandContext,
  type PartnerRequest,
  type PartnerRoute,
  type Reply,
} from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { WEBHOOK_ROUTE } from '../../read-api/webhooks/answer.ts';
import { testWebhookOperation } from '../../read-api/webhooks/test-operation.ts';

export interface WebhookTestDeps {
  readonly sendTest: SendTest;
  /** Resolves when the read models have the position, or a short time is over. */
  readonly projected: (position: Position | null) => Promise<unknown>;
}

/** POST /v1/webhooks/{webhook_id}/test */
export const webhookTestRoute = (deps: WebhookTestDeps): PartnerRoute => ({
  ...WEBHOOK_ROUTE,
  method: 'POST',
  path: '/v1/webhooks/:webhook_id/test',
  body: 'optional',
  operation: testWebhookOperation,
  handle: (request) => test(deps, request),
});

const test = async ({ sendTest, projected }: WebhookTestDeps, request: PartnerRequest): Promise<Reply> => {
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
};
