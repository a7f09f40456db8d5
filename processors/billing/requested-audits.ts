import { recordAudit } from '../../commands/billing/record-audit.ts';
import type { CommandContext } from '../../commands/handle.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import type { EventStore } from '../../event-store/port.ts';
import { iso } from '../../platform/clock/clock.ts';
import { endsWithin, throttled } from '../../platform/clock/waiting.ts';
import { createSemaphore } from '../../platform/limits/semaphore.ts';
import type { Logger } from '../../platform/telemetry/log.ts';
import { type AuditDeps, type AuditOptions, auditBilling, type BillingAudit } from './audit.ts';

/** An audit of a small ledger ends within this time; otherwise the page shows it as running. */
const MOMENT_MS = 3_000;
const MAX_WAIT_MS = 30_000;
/** Minimum interval between audits of a partner: the longer of a fixed time and a multiple of the last audit. */
const REST_MS = 10 * MINUTE;
const REST_TIMES = 10;
/** Reveals that an audit may hold in memory, each 5 KB at most: larger ledgers are audited by the command, in its own process. */
const MAX_REVEALS = 100_000;

/** The last audit of a partner. */
export interface Verdict {
  readonly began_at: string;
  /** null: it is still running, or a restart ended it. */
  readonly ended_at: string | null;
  /** null: it failed. */
  readonly report: BillingAudit['report'] | null;
}

type Deps = AuditDeps & { readonly log: Logger };

/** Reads with pauses, for work on whole ledgers in a process that also serves requests. */
export const withPauses = (store: EventStore): EventStore => ({
  ...store,
  readStream: (...read) => throttled(store.readStream(...read)),
  // Batch by batch: one has up to thousands of events.
  follow: (options) => throttled(store.follow(options), 1),
});

/**
 * Runs the audits that dashboard users request. Each reads the whole log in a process that also serves requests, so they run
 * one at a time, with pauses, and at limited intervals.
 */
export function createRequestedAudits(deps: Deps, maxReveals = MAX_REVEALS) {
  const { pool, log } = deps;
  const paced = { ...deps, store: withPauses(deps.store) };
  const oneAtATime = createSemaphore({ limit: 1 });
  const running = new Map<string, Promise<void>>();

  return {
    verdict: (partnerId: string) => readVerdict(pool, partnerId),
    /** Begins an audit and waits for a moment, unless the last one is too recent or the ledger too large. */
    audit: async (partnerId: string, context: CommandContext): Promise<'begun' | 'recent' | 'too-large'> => {
      if (running.has(partnerId)) return 'begun';
      if (await isTooLarge(pool, partnerId, maxReveals)) return 'too-large';
      const began = await begin(deps, partnerId);
      if (began === null) return 'recent';
      await recordAudit(deps.store, partnerId, context).catch((error: unknown) =>
        log.warn({ error: String(error) }, 'the activity lacks an audit, which runs all the same'),
      );
      const run = oneAtATime
        .enter(() => auditAndStore(paced, { partnerId, patienceMs: MAX_WAIT_MS, maxReveals }, began))
        .catch((error: unknown) =>
          log.error({ error: String(error) }, 'verdict of a billing audit was not stored'),
        )
        .finally(() => running.delete(partnerId));
      running.set(partnerId, run);
      await endsWithin(run, MOMENT_MS);
      return 'begun';
    },
    close: async (): Promise<void> => {
      await endsWithin(Promise.allSettled(running.values()), MOMENT_MS);
    },
  };
}

async function readVerdict(pool: Deps['pool'], partnerId: string): Promise<Verdict | null> {
  const { rows } = await pool.query<{ began_at: Date; ended_at: Date | null; report: Verdict['report'] }>(
    'select began_at, ended_at, report from work.audit_verdict where partner_id = $1',
    [partnerId],
  );
  const [row] = rows;
  if (!row) return null;
  const { began_at, ended_at, report } = row;
  return { began_at: iso(began_at.getTime()), ended_at: ended_at && iso(ended_at.getTime()), report };
}

async function isTooLarge(pool: Deps['pool'], partnerId: string, maxReveals: number): Promise<boolean> {
  const { rows } = await pool.query<{ reveals: string }>({
    name: 'audited_reveals',
    text: 'select count(*) as reveals from (select from read.reveal_unit where partner_id = $1 limit $2) completed',
    values: [partnerId, maxReveals + 1],
  });
  return Number(rows[0]?.reveals ?? 0) > maxReveals;
}

/** Records the beginning of an audit. @returns when it begins; null if the last one is too recent */
async function begin({ pool, clock }: Deps, partnerId: string): Promise<Date | null> {
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
}

async function auditAndStore(deps: Deps, options: AuditOptions, began: Date): Promise<void> {
  const { pool, clock, log } = deps;
  const report = await auditBilling(deps, options)
    .then((audited) => audited.report)
    .catch((error: Error) => {
      log.error({ error: error.message }, 'billing audit failed; no verdict is stored');
      return null;
    });
  // Matches `began_at`, because another process may have started a later audit, whose verdict counts.
  await pool.query(
    'update work.audit_verdict set ended_at = $2, report = $3 where partner_id = $1 and began_at = $4',
    [options.partnerId, new Date(clock.now()), report && JSON.stringify(report), began],
  );
}
