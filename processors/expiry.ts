import type pg from 'pg';
import type { Logger } from 'pino';
import {
  appendSafely,
  type CommandContext,
  conflictRetries,
  ownContext,
  toNewEvents,
} from '../commands/handle.ts';
import type { EventSchemas } from '../domain/kernel/events.ts';
import { HOUR, isoTime, MINUTE, utcDay } from '../domain/kernel/time.ts';
import { expiredStream } from '../domain/sessions/events.ts';
import type { EventStore, Position } from '../event-store/port.ts';
import { pause } from '../platform/clock/waiting.ts';
import { queryWithSynchronousCommit } from '../platform/postgres/transactions.ts';
import { type ConsumerProgress, type Consumers, createConsumerProgress } from './consumers.ts';
import type { ProcessorDeps } from './deps.ts';
import { inParallel } from './for-each.ts';
import { type ExpiredStream, retireStream } from './retire-streams.ts';

/** The id of an item that is deleted, as its expiry event names it. */
export interface ExpiringId {
  readonly id: string;
  readonly partner_id: string;
  readonly expires_at: Date;
  /** Why it ends before its time; null: it does not. */
  readonly reason?: string | null;
}

/** Records durably which items are about to be deleted, so that a crash cannot lose their expiry events. */
export const noteExpiring = (pool: pg.Pool, kind: string, rows: readonly ExpiringId[]): Promise<void> =>
  queryWithSynchronousCommit(
    pool,
    `insert into work.expiring (kind, id, partner_id, expires_at, reason)
     select $1, * from unnest($2::text[], $3::uuid[], $4::timestamptz[], $5::text[]) on conflict (kind, id) do nothing`,
    [
      kind,
      rows.map(({ id }) => id),
      rows.map(({ partner_id }) => partner_id),
      rows.map(({ expires_at }) => expires_at),
      rows.map(({ reason = null }) => reason),
    ],
  );

/**
 * Finds items that an earlier sweep deleted without appending their expiry events: recorded, but gone from the read model.
 * @param present SQL that selects, as `id`, those of the ids `$1` that the read model still holds
 */
async function readCutOff(pool: pg.Pool, kind: string, present: string): Promise<ExpiringId[]> {
  const { rows } = await pool.query<ExpiringId>(
    'select id, partner_id, expires_at, reason from work.expiring where kind = $1',
    [kind],
  );
  if (rows.length === 0) return [];
  const known = await pool.query<{ id: string }>(present, [rows.map(({ id }) => id)]);
  const ids = new Set(known.rows.map(({ id }) => id));
  return rows.filter(({ id }) => !ids.has(id));
}

/**
 * Records the expiry of a partner's items by their ids alone. A crash before the append is confirmed writes the event
 * again; projections ignore the repeat.
 * @returns its log position; null if the store does not report it
 * @throws the port's errors
 */
export async function recordExpiry(
  store: EventStore,
  partnerId: string,
  schemas: EventSchemas,
  event: { readonly type: string; readonly data: object },
  context: CommandContext,
): Promise<Position | null> {
  const stream = expiredStream(partnerId, utcDay(context.at));
  const events = toNewEvents(schemas, [event], { ...context, partnerId });
  const afterConflict = conflictRetries();
  for (;;) {
    try {
      const [last] = await Array.fromAsync(store.readStream(stream, { direction: 'backwards', limit: 1 }));
      return (await appendSafely(store, stream, last?.revision ?? 'no_stream', events)).position;
    } catch (error) {
      // Another sweep may append for the same partner.
      await afterConflict(error);
    }
  }
}

/** One kind of expiring item, and the prefix of its streams. */
export interface Expiring {
  /** Name of the kind, and of the projection whose rows list its items. */
  readonly name: string;
  readonly prefix: string;
  /** An id before all others. */
  readonly firstId: string;
  /** Its table, with an index on expires_at. */
  readonly table: string;
  /** Selects the `DueRow`s of a batch (`expiredItems`); `ready`: consumers have passed them (`$2`), and day `$3` is later. */
  readonly due: string;
  /** The condition of items that began before day `$2`: later ones are not overdue, since their day is not closed. */
  readonly counted: string;
  /** Selects, as `id`, those of the ids `$1` that the projection still holds. */
  readonly present: string;
  readonly schemas: EventSchemas;
  /** Makes the expiry event of a partner's items, with the time at which each expired (ISO 8601). */
  expiredEvent(partnerId: string, expired: [id: string, at: string][]): { type: string; data: object };
}

export interface SweepOptions extends ProcessorDeps {
  readonly log: Logger;
  readonly consumers: Consumers;
  /**
   * Returns the first UTC day (`YYYY-MM-DD`) whose usage is not closed; null if none is closed. Items of that day or later
   * stay, because the daily counts do not include them yet.
   */
  readonly closedBefore: () => Promise<string | null>;
  /** Waits until a projection reaches a position; false after a time limit. */
  readonly projected: (name: string, position: Position | null) => Promise<boolean>;
  /** Called after each run with the number of overdue items and the age of the oldest, in seconds. */
  readonly onBlocked: (name: string, rows: number, seconds: number) => void;
  readonly signal: AbortSignal;
  /** Time limit of a run in milliseconds; the next run continues. */
  readonly forMs: number;
}

/** Where the next batch begins. */
interface Cursor {
  /** `expires_at` of the last item as PostgreSQL text, which keeps its microseconds. */
  readonly cursor: string;
  readonly id: string;
}

interface DueRow extends ExpiredStream, ExpiringId, Cursor {
  /** Whether every expired item of the same stream may be deleted now. */
  readonly ready: boolean;
}

const BATCH = 500;

/**
 * Returns SQL that selects the items of a batch: the next that expired by `$1`, after `$4` and `$5`. It reads no other items,
 * so `columns` say which of them may be deleted now.
 */
export const expiredItems = ({
  table,
  id,
  idType,
  columns,
}: {
  readonly table: string;
  readonly id: string;
  readonly idType: 'uuid' | 'text';
  /** Further columns of the table's row `i`. */
  readonly columns: string;
}): string => `
  select i.${id} as id, i.partner_id, i.expires_at, i.expires_at::text as cursor, ${columns}
  from ${table} i
  where i.expires_at <= $1 and (i.expires_at, i.${id}) > ($4::timestamptz, $5::${idType})
  order by i.expires_at, i.${id} limit ${BATCH}`;

/** Reported of those that expired first. Millions may at one moment: to read all would come to the query's time limit. */
const MAX_OVERDUE_ROWS = 100_000;
/** Items still present so long after their expiry are reported. */
const OVERDUE_MS = 10 * MINUTE;
/** Days are closed an hour after midnight; the second hour allows for a slow run. */
const CLOSED_AFTER_MS = 2 * HOUR;

/**
 * Deletes expired items: first their streams, then it appends the expiry event on which the read model drops its rows. The
 * next run completes an interrupted run: it finds the rows again or, after a rebuild dropped them, their records in
 * `work.expiring`.
 */
export async function sweep(kind: Expiring, options: SweepOptions): Promise<void> {
  const { store, pool, projected } = options;
  const consumerProgress = createConsumerProgress(pool, options.consumers);
  try {
    // Until the previous run's events are projected, its items still appear as due.
    if (!(await projected(kind.name, await store.head()))) return;
    const cutOff = await readCutOff(pool, kind.name, kind.present);
    if (!(await recordExpired(kind, options, cutOff))) return;
    await inBatches(kind, options, consumerProgress);
  } catch (error) {
    if (!options.signal.aborted) throw error;
  } finally {
    if (!options.signal.aborted) await reportBlocked(kind, options, consumerProgress);
  }
}

/** Takes the oldest first. */
async function inBatches(
  kind: Expiring,
  options: SweepOptions,
  consumerProgress: ConsumerProgress,
): Promise<void> {
  const { store, pool, clock, signal, forMs } = options;
  const started = performance.now();
  for (let after: Cursor | undefined = { cursor: '-infinity', id: kind.firstId }; after !== undefined; ) {
    const begun = performance.now();
    if (signal.aborted || begun - started > forMs) return;
    const passed = await consumerProgress.passed();
    const closed = await options.closedBefore();
    if (passed === null || closed === null) return;
    const values: unknown[] = [new Date(clock.now()), passed, closed, after.cursor, after.id];
    const due: pg.QueryResult<DueRow> = await pool.query({
      name: `due ${kind.name}`,
      text: kind.due,
      values,
    });
    const { rows } = due;
    const ready = rows.filter((row) => row.ready);
    if (ready.length > 0) await noteExpiring(pool, kind.name, ready);
    const gone = await retire(ready, { store, consumerProgress, passed, clock, signal });
    if (!(await recordExpired(kind, options, gone))) return;
    after = rows.length === BATCH ? rows.at(-1) : undefined;
    // Pauses as long as the batch took, so that the sweep uses at most half of the store's time.
    if (after !== undefined) await pause(performance.now() - begun, signal);
  }
}

/** Deletes the events of the rows' streams and returns the rows that are gone. */
async function retire(rows: readonly DueRow[], deps: Parameters<typeof retireStream>[0]): Promise<DueRow[]> {
  const gone: DueRow[] = [];
  const streams = Map.groupBy(rows, ({ stream }) => stream);
  await inParallel(streams.values(), async (ofStream) => {
    const [first] = ofStream;
    if (first && (await retireStream(deps, first))) gone.push(...ofStream);
  });
  return gone;
}

/**
 * Appends the expiry events, one per partner and reason, waits for their projection and removes the items' records; false if that takes too
 * long and the next run continues.
 */
export async function recordExpired(
  { name, expiredEvent, schemas }: Pick<Expiring, 'name' | 'expiredEvent' | 'schemas'>,
  { store, pool, clock, projected }: Pick<SweepOptions, 'store' | 'pool' | 'clock' | 'projected'>,
  gone: readonly ExpiringId[],
): Promise<boolean> {
  if (gone.length === 0) return true;
  const context = ownContext(clock);
  const positions: (Position | null)[] = [];
  await inParallel(
    Map.groupBy(gone, ({ partner_id, reason }) => `${partner_id} ${reason ?? ''}`).values(),
    async (rows) => {
      const [{ partner_id, reason }] = rows as [ExpiringId];
      const expired = rows.map((row): [string, string] => [row.id, isoTime(row.expires_at.getTime())]);
      const { type, data } = expiredEvent(partner_id, expired);
      const event = { type, data: { ...data, ...(reason ? { reason } : {}) } };
      positions.push(await recordExpiry(store, partner_id, schemas, event, context));
    },
  );
  const last = positions.includes(null)
    ? await store.head()
    : positions.reduce((one, other) => ((other ?? -1n) > (one ?? -1n) ? other : one));
  if (!(await projected(name, last))) return false;
  await pool.query({
    name: 'forget_expiring',
    text: 'delete from work.expiring where kind = $1 and id = any ($2)',
    values: [name, gone.map(({ id }) => id)],
  });
  return true;
}

/** A blocked deletion is never silent (architecture, rule 9). */
async function reportBlocked(
  kind: Expiring,
  options: SweepOptions,
  consumerProgress: ConsumerProgress,
): Promise<void> {
  const { pool, clock, log, closedBefore, onBlocked } = options;
  const now = clock.now();
  const { rows } = await pool.query<{ rows: number; oldest: Date | null; first_position: string | null }>({
    name: `overdue ${kind.name}`,
    text: `select count(*)::int as rows, min(expires_at) as oldest, min(last_position) as first_position
           from (select expires_at, last_position, ${kind.counted} as is_counted from ${kind.table}
                 where expires_at <= $1 order by expires_at limit ${MAX_OVERDUE_ROWS}) first where is_counted`,
    values: [new Date(now - OVERDUE_MS), utcDay(now - CLOSED_AFTER_MS)],
  });
  const { rows: count = 0, oldest = null, first_position = null } = rows[0] ?? {};
  onBlocked(kind.name, count, oldest === null ? 0 : (now - oldest.getTime()) / 1_000);
  if (oldest === null) return;
  log.warn(
    {
      what: kind.name,
      rows: count,
      oldest: isoTime(oldest.getTime()),
      notPassedBy: await consumerProgress.before(BigInt(first_position ?? 0)),
      closedBefore: await closedBefore(),
    },
    'expired items are not deleted yet; the next run retries',
  );
}
