/** What the dashboard's pages read and change, beside the API's routes. */
import type { CommandContext } from '../commands/handle.ts';
import { retryFailed } from '../commands/webhooks/retry-deliveries.ts';

import type { Visit } from '../dashboard/api.ts';
import type { BillingDeps } from '../dashboard/pages/billing.ts';
import type { DeliveryDeps, RetriedAll } from '../dashboard/pages/deliveries.ts';
import type { DashboardKey, KeyDeps } from '../dashboard/pages/keys.ts';
import type { OverviewDeps } from '../dashboard/pages/overview.ts';
import type { SessionDeps } from '../dashboard/pages/sessions.ts';
import { isoTime } from '../domain/kernel/time.ts';
import { DEFAULT_LIMITS } from '../domain/partners/partner.ts';
import type { Position } from '../event-store/port.ts';
import { asUuid } from '../http/contract/parameters.ts';
import { refusal } from '../http/errors/error-catalog.ts';
import { createRequestedAudits } from '../processors/billing/requested-audits.ts';
import { listDays, listMonths } from '../queries/billing/reveal-units.ts';
import {
  findKey,
  findPartner,
  type KeyRow,
  listKeyUses,
  listLatestKeys,
} from '../queries/partners/partners.ts';
import { listRevealsOf } from '../queries/reveals/reveals.ts';
import { recentSessions } from '../read-api/sessions/sessions.ts';
import { readDays } from '../read-api/usage/get-usage.ts';
import { listDeliveries } from '../read-api/webhooks/delivery-queries.ts';
import { findEndpoint } from '../read-api/webhooks/endpoints.ts';
import { createKeyChanges } from '../write-api/partners/keys.ts';
import { retryDeps } from './modules/deliveries.ts';
import type { Runtime } from './runtime.ts';

/** Makes the context of a command from the dashboard request and its user. */
export const visitContext = ({ request, user }: Visit): CommandContext => ({
  correlationId: request.id,
  causationId: request.id,
  at: request.receivedAt,
  partnerId: user.partner_id,
  userId: user.user_id,
});

/** A page with ten thousand keys would block the event loop for a third of a second. */
const ENDED_SHOWN = 50;

/** PostgreSQL refuses a NUL, which a path may hold. */
const KEY_ID = /^[\w-]{1,100}$/;

const withUses = async (db: Runtime['db'], keys: readonly KeyRow[]): Promise<DashboardKey[]> => {
  const uses = await listKeyUses(
    db,
    keys.map(({ key_id }) => key_id),
  );
  return keys.map((key) => ({ ...key, used_at: uses.get(key.key_id) ?? null }));
};

/** Reads and changes the keys that the dashboard shows. */
export const dashboardKeys = (
  { store, db, clock }: Runtime,
  ownWrite: (position: Position | null) => Promise<unknown>,
  admitChange: (partnerId: string) => Promise<boolean>,
): KeyDeps => {
  const changes = createKeyChanges({ store, projected: ownWrite, admitChange });
  return {
    ceilingsOf: async (partnerId) => {
      const partner = await findPartner(db, partnerId);
      if (partner === null) throw new TypeError('the partner of a logged-in user does not exist');
      return partner;
    },
    usualLimits: DEFAULT_LIMITS,
    list: async (partnerId) =>
      withUses(db, await listLatestKeys(db, partnerId, isoTime(clock.now()), ENDED_SHOWN)),
    find: async (partnerId, keyId) => {
      const key = KEY_ID.test(keyId) ? await findKey(db, keyId) : null;
      return key?.partner_id === partnerId ? ((await withUses(db, [key]))[0] ?? null) : null;
    },
    create: (visit, { name, limits }) =>
      changes.create(visit.user.partner_id, name, limits, visitContext(visit)),
    update: (visit, keyId, limits) =>
      changes.update(visit.user.partner_id, keyId, limits, visitContext(visit)),
    revoke: (visit, keyId) => changes.revoke(visit.user.partner_id, keyId, visitContext(visit)),
  };
};

type CaughtUp = () => Promise<boolean>;

export const dashboardOverview = ({ db }: Runtime, caughtUp: CaughtUp): OverviewDeps => ({
  requests: async (partnerId, since) => {
    await caughtUp();
    return readDays(db, partnerId, since);
  },
  reveals: async (partnerId, since) => {
    await caughtUp();
    return listDays(db, partnerId, since);
  },
});

export const dashboardSessions = (runtime: Runtime, caughtUp: CaughtUp): SessionDeps => ({
  recent: async ({ user, request }, trackerId, before) => {
    await caughtUp();
    const query = { partnerId: user.partner_id, trackerId, before, now: request.receivedAt };
    return recentSessions(runtime, query);
  },
  revealsOf: async (partnerId, sessionIds) => {
    await caughtUp();
    return listRevealsOf(runtime.db, partnerId, sessionIds);
  },
});

/** Provides the units by month and the audits of the ledger. */
export const dashboardBilling = (
  runtime: Runtime,
  caughtUp: CaughtUp,
): BillingDeps & { close(): Promise<void> } => ({
  ...createRequestedAudits(runtime),
  months: async (partnerId) => {
    await caughtUp();
    return listMonths(runtime.db, partnerId);
  },
});

/** Retries all failed deliveries as the API's retry does one. */
export const dashboardRetries = (runtime: Runtime, caughtUp: () => Promise<boolean>): DeliveryDeps => {
  const { db } = runtime;
  const retrying = retryDeps(runtime);
  return {
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
  };
};

const errorIn = ({ status, body }: ReturnType<typeof refusal>) => {
  const { error } = JSON.parse(String(body));
  return { ok: false, status, code: error.code as string, message: error.message as string } as const;
};
