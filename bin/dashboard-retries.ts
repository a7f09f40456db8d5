import { retryFailed } from '../commands/webhooks/retry-deliveries.ts';
import { oneRetryAtATime } from '../dashboard/one-retry-at-a-time.ts';
import type { DeliveryDeps, RetriedAll } from '../dashboard/pages/deliveries.ts';
import { refusal } from '../http/error-catalog.ts';
import { asUuid } from '../http/params.ts';
import { findEndpoint } from '../queries/webhooks/endpoints.ts';
import { listDeliveries } from '../read-api/webhooks/delivery-queries.ts';
import { visitContext } from './dashboard-context.ts';
import { retryDeps } from './modules/deliveries.ts';
import type { Runtime } from './runtime.ts';

/** Retries all failed deliveries as the API's retry does one. */
export const dashboardRetries = (runtime: Runtime, caughtUp: () => Promise<boolean>): DeliveryDeps => {
  const { db } = runtime;
  const retrying = retryDeps(runtime);
  return oneRetryAtATime({
    retryFailedSince: async (visit, id, day): Promise<RetriedAll> => {
      const { request, user } = visit;
      const answerTo = (code: Parameters<typeof refusal>[1]) => errorIn(refusal(request, code));
      const now = request.receivedAt;
      const webhookId = asUuid(id);
      const endpoint = webhookId && (await findEndpoint({ db, caughtUp }, user.partner_id, webhookId, now));
      if (webhookId === null || !endpoint) {
        return { retried: 0, all: false, refused: answerTo('webhook_not_found') };
      }
      await caughtUp();
      const deleted = endpoint.deleted_at !== null;
      const listFailed = (before: bigint | null, limit: number) =>
        listDeliveries(db, { webhookId, deleted, status: 'failed', before, limit, now });
      const since = new Date(day).toISOString();
      const { refusal: code, ...done } = await retryFailed(retrying, listFailed, since, visitContext(visit));
      return { ...done, refused: code && answerTo(code) };
    },
  });
};

const errorIn = ({ status, body }: ReturnType<typeof refusal>) => {
  const { error } = JSON.parse(String(body));
  return { ok: false, status, code: error.code as string, message: error.message as string } as const;
};
