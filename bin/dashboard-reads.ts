import { setTimeout } from 'node:timers/promises';
import type { BillingParts, Verdict } from '../dashboard/pages/billing.ts';
import type { OverviewParts } from '../dashboard/pages/overview.ts';
import type { SessionParts } from '../dashboard/pages/sessions.ts';
import { iso } from '../platform/clock.ts';
import { listDays, listMonths } from '../read-api/billing-rows.ts';
import { listRevealsOf } from '../read-api/reveal-rows.ts';
import { readRecent, toSessionBodies } from '../read-api/session-rows.ts';
import { readDays } from '../read-api/usage-rows.ts';
import { auditBilling } from './audit-billing.ts';
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

/** An audit of a small ledger has ended by then; of a large one, the page says that it runs. */
const AUDIT_MOMENT_MS = 3_000;
const AUDIT_PATIENCE_MS = 30_000;

/** Audits run one a partner and process. */
export const dashboardBilling = (
  foundation: Foundation,
  caughtUp: CaughtUp,
): BillingParts & { close(): Promise<void> } => {
  const { db, pool, clock, log } = foundation;
  const running = new Map<string, Promise<void>>();
  const audit = async (partnerId: string): Promise<void> => {
    const began = new Date(clock.now());
    await pool.query(
      `insert into work.audit_verdict (partner_id, began_at) values ($1, $2)
       on conflict (partner_id) do update set began_at = excluded.began_at, ended_at = null, report = null`,
      [partnerId, began],
    );
    const report = await auditBilling(foundation, { partnerId, patienceMs: AUDIT_PATIENCE_MS })
      .then((audited) => audited.report)
      .catch((error: Error) => {
        log.error({ error: error.message }, 'an audit came to no end');
        return null;
      });
    // Another process may have begun a later one, whose verdict is the one to wait for.
    await pool.query(
      'update work.audit_verdict set ended_at = $2, report = $3 where partner_id = $1 and began_at = $4',
      [partnerId, new Date(clock.now()), report && JSON.stringify(report), began],
    );
  };
  return {
    months: async (partnerId) => {
      await caughtUp();
      return listMonths(db, partnerId);
    },
    verdict: async (partnerId) => {
      const { rows } = await pool.query<{ began_at: Date; ended_at: Date | null; report: Verdict['report'] }>(
        'select began_at, ended_at, report from work.audit_verdict where partner_id = $1',
        [partnerId],
      );
      const [row] = rows;
      if (!row) return null;
      const { began_at, ended_at, report } = row;
      return { began_at: iso(began_at.getTime()), ended_at: ended_at && iso(ended_at.getTime()), report };
    },
    audit: async (partnerId) => {
      const run = running.get(partnerId) ?? audit(partnerId).finally(() => running.delete(partnerId));
      running.set(partnerId, run);
      await Promise.race([run, setTimeout(AUDIT_MOMENT_MS, undefined, { ref: false })]);
    },
    close: async () => {
      await Promise.race([
        Promise.allSettled(running.values()),
        setTimeout(AUDIT_MOMENT_MS, undefined, { ref: false }),
      ]);
    },
  };
};
