import type { BillingParts } from '../dashboard/pages/billing.ts';
import type { OverviewParts } from '../dashboard/pages/overview.ts';
import type { SessionParts } from '../dashboard/pages/sessions.ts';
import { listDays, listMonths } from '../read-api/billing-rows.ts';
import { listRevealsOf } from '../read-api/reveal-rows.ts';
import { readRecent, toSessionBodies } from '../read-api/session-rows.ts';
import { readDays } from '../read-api/usage-rows.ts';
import { dashboardAudits } from './dashboard-audits.ts';
import type { Foundation } from './foundation.ts';

type CaughtUp = () => Promise<boolean>;

export const dashboardOverview = ({ db }: Foundation, caughtUp: CaughtUp): OverviewParts => ({
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

export const dashboardSessions = ({ db, dayKeys, cursors }: Foundation, caughtUp: CaughtUp): SessionParts => {
  return {
    recent: async ({ user, request }, trackerId, before) => {
      const list = `recent sessions ${user.partner_id}`;
      const place = before === null ? null : await cursors.open(before, list);
      if (place === null && before !== null) return null;
      await caughtUp();
      const found = await readRecent(db, {
        partnerId: user.partner_id,
        trackerId,
        before: place,
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

/** Units by month, and the audits that prove them. */
export const dashboardBilling = (
  foundation: Foundation,
  caughtUp: CaughtUp,
): BillingParts & { close(): Promise<void> } => ({
  ...dashboardAudits(foundation),
  months: async (partnerId) => {
    await caughtUp();
    return listMonths(foundation.db, partnerId);
  },
});
