import type { BillingDeps } from '../dashboard/pages/billing.ts';
import type { OverviewDeps } from '../dashboard/pages/overview.ts';
import type { SessionDeps } from '../dashboard/pages/sessions.ts';
import { createRequestedAudits } from '../processors/billing/requested-audits.ts';
import { listDays, listMonths } from '../queries/billing/reveal-units.ts';
import { listRevealsOf } from '../queries/reveals/reveals.ts';
import { readRecent, toSessionBodies } from '../queries/sessions/sessions.ts';
import { readDays } from '../read-api/usage/rows.ts';
import type { Runtime } from './runtime.ts';

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

const PAGE = 50;

export const dashboardSessions = ({ db, dayKeys, cursors }: Runtime, caughtUp: CaughtUp): SessionDeps => {
  return {
    recent: async ({ user, request }, trackerId, before) => {
      const list = `recent sessions ${user.partner_id}`;
      const cursor = before === null ? null : await cursors.open(before, list);
      if (cursor === null && before !== null) return null;
      await caughtUp();
      const found = await readRecent(db, {
        partnerId: user.partner_id,
        trackerId,
        before: cursor,
        limit: PAGE + 1,
        now: request.receivedAt,
      });
      const page = found.slice(0, PAGE);
      const last = page.at(-1);
      return {
        sessions: await toSessionBodies(page, dayKeys),
        older: found.length > PAGE && last ? await cursors.seal(BigInt(last.position), list) : null,
      };
    },
    revealsOf: async (partnerId, sessionIds) => {
      await caughtUp();
      return listRevealsOf(db, partnerId, sessionIds);
    },
  };
};

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
