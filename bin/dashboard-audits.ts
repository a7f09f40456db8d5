import { setTimeout } from 'node:timers/promises';
import type { BillingDeps, Verdict } from '../dashboard/pages/billing.ts';
import { MINUTE } from '../domain/kernel/time.ts';
import type { EventStore } from '../event-store/port.ts';
import { iso } from '../platform/clock.ts';
import { createGate } from '../platform/gate.ts';
import { auditBilling } from './audit-billing.ts';
import type { Runtime } from './runtime.ts';

/** An audit of a small ledger has ended by then; of a large one, the page says that it runs. */
const MOMENT_MS = 3_000;
const PATIENCE_MS = 30_000;
/** A partner's next audit waits so long, and so many times as long as the last one took, whichever is longer. */
const REST_MS = 10 * MINUTE;
const REST_TIMES = 10;
/** Between two batches of the log an audit pauses so many times as long as the batch took. */
const PAUSE_TIMES = 3;

/**
 * Audits that users of the dashboard ask for. Each reads the log of all partners, in a process that answers their
 * requests: so one at a time, with pauses, and not again at once.
 */
export const dashboardAudits = (
  runtime: Runtime,
): Pick<BillingDeps, 'verdict' | 'audit'> & { close(): Promise<void> } => {
  const { pool, clock, log } = runtime;
  const paced = { ...runtime, store: { ...runtime.store, follow: inPaces(runtime.store) } };
  const oneAtATime = createGate({ room: 1 });
  const running = new Map<string, Promise<void>>();

  const begin = async (partnerId: string): Promise<Date | null> => {
    const now = clock.now();
    const { rowCount } = await pool.query(
      `insert into work.audit_verdict as last (partner_id, began_at) values ($1, $2)
       on conflict (partner_id) do update set began_at = excluded.began_at, ended_at = null, report = null
         where last.began_at > $2 or greatest(
           last.began_at + $3 * interval '1 millisecond',
           last.ended_at + $4 * (last.ended_at - last.began_at)) <= $2`,
      [partnerId, new Date(now), REST_MS, REST_TIMES],
    );
    return rowCount === 1 ? new Date(now) : null;
  };

  const audit = async (partnerId: string, began: Date): Promise<void> => {
    const report = await auditBilling(paced, { partnerId, patienceMs: PATIENCE_MS })
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
      if (running.has(partnerId)) return true;
      const began = await begin(partnerId);
      if (began === null) return false;
      const run = oneAtATime
        .enter(() => audit(partnerId, began))
        .catch((error: unknown) =>
          log.error({ error: String(error) }, 'a verdict of an audit was not stored'),
        )
        .finally(() => running.delete(partnerId));
      running.set(partnerId, run);
      await Promise.race([run, setTimeout(MOMENT_MS, undefined, { ref: false })]);
      return true;
    },
    close: async () => {
      await Promise.race([
        Promise.allSettled(running.values()),
        setTimeout(MOMENT_MS, undefined, { ref: false }),
      ]);
    },
  };
};

/** The log with a pause after each batch, in which others are served. */
const inPaces = (store: Pick<EventStore, 'follow'>): EventStore['follow'] =>
  async function* follow(options) {
    let began = performance.now();
    for await (const batch of store.follow(options)) {
      yield batch;
      await setTimeout(PAUSE_TIMES * (performance.now() - began));
      began = performance.now();
    }
  };
