import type { BillingDeps } from '../dashboard/pages/billing.ts';
import type { OverviewDeps } from '../dashboard/pages/overview.ts';
import type { SessionDeps } from '../dashboard/pages/sessions.ts';
import { createRequestedAudits } from '../processors/billing/requested-audits.ts';
import { listDays, listMonths } from '../queries/billing/reveal-units.ts';
import { listRevealsOf } from '../queries/reveals/reveals.ts';
import { recentSessions } from '../read-api/sessions/recent.ts';
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
