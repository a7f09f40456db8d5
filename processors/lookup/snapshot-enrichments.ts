import type { Logger } from 'pino';
import { ownContext } from '../../commands/handle.ts';
import { type SnapshotLimits, snapshotEnrichment } from '../../commands/lookup/snapshot-streams.ts';
import { aheadAfter, DAY, HOUR, isoTime, utcDay } from '../../domain/kernel/time.ts';
import { pause } from '../../platform/clock/waiting.ts';
import { queryWithSynchronousCommit } from '../../platform/postgres/transactions.ts';
import { type Consumers, createConsumerProgress } from '../consumers.ts';
import type { ProcessorDeps } from '../deps.ts';

export interface SnapshotEnrichmentsOptions extends ProcessorDeps {
  readonly log: Logger;
  readonly digest: (ip: string) => string;
  readonly consumers: Consumers;
  /** Called after each run with the number of overdue results and the age of the oldest, in seconds. */
  readonly onBlocked: (name: string, rows: number, seconds: number) => void;
  readonly signal: AbortSignal;
  /** Time limit of a run in milliseconds; the next run continues. */
  readonly forMs: number;
}

const BATCH = 200;
/** Allows for clock skew between processes and for reads that began before midnight. */
const AFTER_MIDNIGHT_MS = HOUR;
/** Older results without a snapshot are reported. */
const OVERDUE_MS = 2 * DAY;
/** Counting millions would come to the query's time limit, and nothing would be reported. */
const MAX_OVERDUE_ROWS = 100_000;
const NAME = 'saved-lookups';

interface DueResult {
  readonly day: string;
  readonly ip: string;
}

const FIRST: DueResult = { day: '-infinity', ip: '' };

/** The index has it, so that the results of today are not read. */
const DAY_FOUND = `(s.enriched_at at time zone 'UTC')::date`;
// Open work stays as it is; thousands of such addresses would use up each run.
const HAS_NO_WORK = 'not exists (select from read.enrichment_work w where w.ip = s.ip)';

const nextOf = (days: string): string => `
  (select ${DAY_FOUND} as day, s.ip from read.saved_lookup s
   where not s.snapshotted and ${days} and (${DAY_FOUND}, s.ip) > ($3::date, $4) and ${HAS_NO_WORK}
   order by ${DAY_FOUND}, s.ip limit ${BATCH})`;
/** Selects streams of days before `$1`, and of days after `$2`, which a fast clock wrote. */
const TO_SNAPSHOT = `
  select day::text, ip from (${nextOf(`${DAY_FOUND} < $1::date`)} union all ${nextOf(`${DAY_FOUND} > $2::date`)}) due
  order by due.day, ip limit ${BATCH}`;

/**
 * Replaces the enrichments of past days by snapshots whose times are truncated to days (docs/privacy.md). The results of
 * one day are processed together, ordered by address, so that neither times nor order reveal when each was found.
 */
export async function snapshotEnrichments(options: SnapshotEnrichmentsOptions): Promise<void> {
  const { pool, clock, consumers, signal, forMs } = options;
  const consumerProgress = createConsumerProgress(pool, consumers);
  const before = Date.parse(utcDay(clock.now() - AFTER_MIDNIGHT_MS));
  const started = performance.now();
  const passedAtFirst = await consumerProgress.passed();
  if (passedAtFirst !== null) {
    // A crashed process appended their snapshots without truncating; the batch query finds them no more.
    const { rows } = await pool.query<{ ip: string }>('select ip from work.enrichment_truncation');
    await snapshotAll(options, rows, { before, passed: passedAtFirst });
  }
  for (let after = FIRST; ; ) {
    const begun = performance.now();
    const passed = await consumerProgress.passed();
    if (passed === null || signal.aborted || begun - started > forMs) break;
    const { rows } = await pool.query<DueResult>({
      name: 'enrichments_to_snapshot',
      text: TO_SNAPSHOT,
      values: [utcDay(before), utcDay(aheadAfter(clock.now())), after.day, after.ip],
    });
    await snapshotAll(options, rows, { before, passed });
    const last = rows.at(-1);
    if (last === undefined || rows.length < BATCH) break;
    after = last;
    // Pauses as long as the batch took, so that this run uses at most half of the store's time.
    await pause(performance.now() - begun, signal);
  }
  if (!signal.aborted) await reportBlocked(options);
}

/** Records the addresses durably before the first snapshot, so that the next run completes an interrupted batch. */
async function snapshotAll(
  { store, digest, pool, clock }: SnapshotEnrichmentsOptions,
  rows: readonly { readonly ip: string }[],
  limits: SnapshotLimits,
): Promise<void> {
  if (rows.length === 0) return;
  const ips = rows.map(({ ip }) => ip);
  await queryWithSynchronousCommit(
    pool,
    'insert into work.enrichment_truncation select unnest($1::text[]) on conflict (ip) do nothing',
    [ips],
  );
  const context = ownContext(clock);
  for (const ip of ips) await snapshotEnrichment({ store, digest }, ip, limits, context);
  await pool.query('delete from work.enrichment_truncation where ip = any ($1)', [ips]);
}

async function reportBlocked({ pool, clock, log, onBlocked }: SnapshotEnrichmentsOptions): Promise<void> {
  const { rows } = await pool.query<{ rows: number; oldest: Date | null }>({
    name: 'enrichments_not_snapshotted',
    text: `select count(*)::int as rows, min(enriched_at) as oldest from (
             select enriched_at from read.saved_lookup s
             where not s.snapshotted and s.enriched_at < $1 and ${DAY_FOUND} <= $2::date and ${HAS_NO_WORK}
             order by ${DAY_FOUND}, s.ip limit ${MAX_OVERDUE_ROWS}) overdue`,
    values: [new Date(clock.now() - OVERDUE_MS), utcDay(clock.now() - OVERDUE_MS)],
  });
  const { rows: count = 0, oldest = null } = rows[0] ?? {};
  onBlocked(NAME, count, oldest === null ? 0 : (clock.now() - OVERDUE_MS - oldest.getTime()) / 1_000);
  if (oldest === null) return;
  log.warn(
    { what: NAME, rows: count, oldest: isoTime(oldest.getTime()) },
    'saved results of past days still have their exact times; the next run continues',
  );
}
