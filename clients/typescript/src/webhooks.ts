import type { Caller } from './call.ts';
import { createFeed, type Feed } from './feed.ts';
import type {
  Webhook,
  WebhookCreate,
  WebhookDeleted,
  WebhookDelivery,
  WebhookDeliveryDetail,
  WebhookList,
  WebhookRecovery,
  WebhookRecoveryStarted,
  WebhookSecret,
  WebhookTest,
  WebhookUpdate,
} from './generated.ts';
import type { CallOptions } from './options.ts';

export interface DeliveriesOptions extends CallOptions {
  /** Only deliveries in this state. */
  readonly status?: WebhookDelivery['state'] | undefined;
  readonly cursor?: string | undefined;
}

export interface Webhooks {
  list(options?: CallOptions): Promise<WebhookList>;
  /** Shows `signing_secret`, once. Not repeated after an unknown outcome: list first, then rotate the secret. */
  create(webhook: WebhookCreate, options?: CallOptions): Promise<WebhookSecret>;
  get(webhookId: string, options?: CallOptions): Promise<Webhook>;
  update(webhookId: string, changes: WebhookUpdate, options?: CallOptions): Promise<Webhook>;
  delete(webhookId: string, options?: CallOptions): Promise<WebhookDeleted>;
  /** Shows the new `signing_secret`, once; for 24 hours events are signed with the old one too. */
  rotateSecret(webhookId: string, options?: CallOptions): Promise<WebhookSecret>;
  /** Queues a test event; the delivery shows whether it arrived. */
  test(webhookId: string, options?: CallOptions): Promise<WebhookTest>;
  /** The history, newest first, to its end. */
  deliveries(webhookId: string, options?: DeliveriesOptions): Feed<WebhookDelivery>;
  delivery(webhookId: string, deliveryId: string, options?: CallOptions): Promise<WebhookDeliveryDetail>;
  /** Delivers the event again, under the same id. */
  retryDelivery(webhookId: string, deliveryId: string, options?: CallOptions): Promise<WebhookDeliveryDetail>;
  /** Delivers again what failed or waits and was queued since then; answers the recovery that runs, if one does. */
  recover(webhookId: string, since: Date | string, options?: CallOptions): Promise<WebhookRecoveryStarted>;
  /** The progress of a recovery. */
  recovery(webhookId: string, recoveryId: string, options?: CallOptions): Promise<WebhookRecovery>;
}

export const createWebhooks = ({ body }: Caller): Webhooks => {
  const of = (webhookId: string) => ({ path: { webhook_id: webhookId } });
  const one = (webhookId: string, deliveryId: string) => ({
    path: { webhook_id: webhookId, delivery_id: deliveryId },
  });
  return {
    list: (options) => body('listWebhooks', {}, options),
    create: (webhook, options) => body('createWebhook', { body: webhook }, options),
    get: (webhookId, options) => body('getWebhook', of(webhookId), options),
    update: (webhookId, changes, options) =>
      body('updateWebhook', { ...of(webhookId), body: changes }, options),
    delete: (webhookId, options) => body('deleteWebhook', of(webhookId), options),
    rotateSecret: (webhookId, options) => body('rotateWebhookSecret', of(webhookId), options),
    test: (webhookId, options) => body('testWebhook', of(webhookId), options),
    deliveries: (webhookId, { status, cursor: start, ...options } = {}) =>
      createFeed({
        start,
        pause: null,
        read: async (cursor) => {
          const query = { ...(status && { status }), ...(cursor && { cursor }) };
          const page = await body('listWebhookDeliveries', { ...of(webhookId), query }, options);
          return { items: page.deliveries, cursor: page.next_cursor || undefined, hasMore: page.has_more };
        },
      }),
    delivery: (webhookId, deliveryId, options) =>
      body('getWebhookDelivery', one(webhookId, deliveryId), options),
    retryDelivery: (webhookId, deliveryId, options) =>
      body('retryWebhookDelivery', one(webhookId, deliveryId), options),
    recover: (webhookId, since, options) =>
      body(
        'recoverWebhook',
        { ...of(webhookId), body: { since: typeof since === 'string' ? since : since.toISOString() } },
        options,
      ),
    recovery: (webhookId, recoveryId, options) =>
      body('getWebhookRecovery', { path: { webhook_id: webhookId, recovery_id: recoveryId } }, options),
  };
};
