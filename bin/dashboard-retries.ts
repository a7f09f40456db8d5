import { retryDelivery } from '../commands/webhooks/retry-delivery.ts';
import type { DeliveryDeps, RetriedAll } from '../dashboard/pages/deliveries.ts';
import { refusal } from '../http/error-catalog.ts';
import { asUuid } from '../http/params.ts';
import { findEndpoint } from '../queries/webhooks/endpoints.ts';
import { listDeliveries } from '../read-api/webhooks/delivery-rows.ts';
import { visitContext } from './dashboard-context.ts';
import { retryDeps } from './modules/deliveries.ts';
import type { Runtime } from './runtime.ts';

const PAGE = 50;
/** Part of the page's time limit; the rest is for showing the result. */
const MOMENT_MS = 2_500;

/** Retries all failed deliveries as the API's retry does one. */
export const dashboardRetries = (runtime: Runtime, caughtUp: () => Promise<boolean>): DeliveryDeps => {
  const { db } = runtime;
  const retrying = retryDeps(runtime);
  return {
    retryFailedSince: async (visit, id, day): Promise<RetriedAll> => {
      const { request, user } = visit;
      const refusedAs = (code: Parameters<typeof refusal>[1], retried: number): RetriedAll => ({
        retried,
        all: false,
        refused: { ok: false, ...errorIn(refusal(request, code)) },
      });
      const now = request.receivedAt;
      const webhookId = asUuid(id);
      const endpoint = webhookId && (await findEndpoint({ db, caughtUp }, user.partner_id, webhookId, now));
      if (webhookId === null || !endpoint) return refusedAs('webhook_not_found', 0);
      await caughtUp();
      const since = new Date(day).toISOString();
      let retried = 0;
      let before: bigint | null = null;
      const until = performance.now() + MOMENT_MS;
      for (;;) {
        const deleted = endpoint.deleted_at !== null;
        const page = await listDeliveries(db, {
          webhookId,
          deleted,
          status: 'failed',
          before,
          limit: PAGE,
          now,
        });
        const due = page.filter(({ created_at }) => created_at >= since);
        const outcomes = await Promise.all(
          due.map((row) => retryDelivery(retrying, row, visitContext(visit))),
        );
        retried += outcomes.filter(({ ok }) => ok).length;
        // An expired payload stops only its own delivery's retry.
        const stopped = outcomes.find(
          (outcome) => !outcome.ok && outcome.refusal !== 'webhook_event_expired',
        );
        if (stopped && !stopped.ok) return refusedAs(stopped.refusal, retried);
        const last = page.at(-1);
        if (due.length < PAGE || last === undefined) return { retried, all: true, refused: null };
        if (performance.now() > until) return { retried, all: false, refused: null };
        before = BigInt(last.position);
      }
    },
  };
};

const errorIn = ({ status, body }: ReturnType<typeof refusal>) => {
  const { error } = JSON.parse(String(body));
  return { status, code: error.code as string, message: error.message as string };
};
