import type pg from 'pg';
import type { Logger } from 'pino';
import { v7 as uuid } from 'uuid';
import { type SnapshotLimits, snapshotEnrichment } from '../../commands/lookup/snapshot-enrichment.ts';
import { aheadAfter } from '../../domain/kernel/ahead.ts';
import { DAY, HOUR, isoTime, utcDay } from '../../domain/kernel/time.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock.ts';
import { durably } from '../../platform/durably.ts';
import { createWakeup } from '../../platform/wakeup.ts';
import { type Consumers, createPassage } from '../consumers.ts';

export interface SnapshotEnrichmentsOptions {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly log: Logger;
  readonly digest: (ip: string) => string;
  readonly consumers: Consumers;
  /** Called after each run with the results that should have been snapshotted, and for how long the oldest. */
  readonly onBlocked: (name: string, rows: number, seconds: number) => void;
  /** Ends a run between two batches. */
  readonly signal: AbortSignal;
  /** A run begins no batch after so many milliseconds; the next one goes on. */
  readonly forMs: number;
}

const BATCH = 200;
/** Clocks of processes may differ, and reads of the day before may be under way. */
const AFTER_MIDNIGHT = HOUR;
/** A result that is older and not snapshotted is reported. */
const OVERDUE = 2 * DAY;
const NAME = 'saved-lookups';

/**
 * Replaces the enrichments of past days by snapshots, whose times are cut to days (docs/privacy.md). All results of a day
 * go at once and in the order of their addresses, so that neither time nor order of the snapshots says when each was found.
 */
export const snapshotEnrichments = async (options: SnapshotEnrichmentsOptions): Promise<void> => {
  const { pool, clock, consumers, signal, forMs } = options;
  const consumerProgress = createPassage(pool, consumers);
  const before = Date.parse(utcDay(clock.now() - AFTER_MIDNIGHT));
  const wakeup = createWakeup();
  const started = performance.now();
  await endWhatWasLeft(options, { before, passed: await consumerProgress.passed() });
  for (let after = ''; ; ) {
    const begun = performance.now();
    const passed = await consumerProgress.passed();
    if (passed === null || signal.aborted || begun - started > forMs) break;
    const { rows } = await pool.query<{ ip: string }>({
      name: 'enrichments_to_snapshot',
      text: `select ip from read.saved_lookup
             where not snapshotted and (enriched_at < $1 or enriched_at > $2) and ip > $3
             order by ip limit ${BATCH}`,
      values: [new Date(before), new Date(aheadAfter(clock.now())), after],
    });
    const ips = rows.map(({ ip }) => ip);
    await snapshotAll(options, ips, { before, passed });
    const last = ips.at(-1);
    if (last === undefined || ips.length < BATCH) break;
    after = last;
    // Half the time is left to other work on the store.
    await wakeup.wait(performance.now() - begun, signal);
  }
  if (!signal.aborted) await reportBlocked(options);
};

/** A process that died may have appended a snapshot, whose row no query finds any more, and removed nothing. */
const endWhatWasLeft = async (
  options: SnapshotEnrichmentsOptions,
  { before, passed }: { readonly before: number; readonly passed: Position | null },
): Promise<void> => {
  if (passed === null) return;
  const { rows } = await options.pool.query<{ ip: string }>('select ip from work.enrichment_truncation');
  const ips = rows.map(({ ip }) => ip);
  await snapshotAll(options, ips, { before, passed });
};

/** The addresses are written down before any of them is begun, and struck out once all have ended. */
const snapshotAll = async (
  { store, digest, pool, clock }: SnapshotEnrichmentsOptions,
  ips: readonly string[],
  limits: SnapshotLimits,
): Promise<void> => {
  if (ips.length === 0) return;
  await durably(
    pool,
    'insert into work.enrichment_truncation select unnest($1::text[]) on conflict (ip) do nothing',
    [ips],
  );
  const id = uuid();
  const context = { correlationId: id, causationId: id, at: clock.now() };
  for (const ip of ips) await snapshotEnrichment({ store, digest }, ip, limits, context);
  await pool.query('delete from work.enrichment_truncation where ip = any ($1)', [ips]);
};

const reportBlocked = async ({ pool, clock, log, onBlocked }: SnapshotEnrichmentsOptions): Promise<void> => {
  const { rows } = await pool.query<{ rows: number; oldest: Date | null }>({
    name: 'enrichments_not_snapshotted',
    text: `select count(*)::int as rows, min(enriched_at) as oldest from read.saved_lookup s
           where not snapshotted and enriched_at < $1
             and not exists (select from read.enrichment_work w where w.ip = s.ip)`,
    values: [new Date(clock.now() - OVERDUE)],
  });
  const { rows: count = 0, oldest = null } = rows[0] ?? {};
  onBlocked(NAME, count, oldest === null ? 0 : (clock.now() - OVERDUE - oldest.getTime()) / 1_000);
  if (oldest === null) return;
  log.warn(
    { what: NAME, rows: count, oldest: isoTime(oldest.getTime()) },
    'saved results of past days still have their exact times; the next run goes on',
  );
};
