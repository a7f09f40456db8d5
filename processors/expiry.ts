import type pg from 'pg';
import type { Logger } from 'pino';
import { v7 as uuid } from 'uuid';
import { tellExpired } from '../commands/tell-expired.ts';
import type { EventSchemas } from '../domain/kernel/events.ts';
import { HOUR, isoTime, MINUTE, utcDay } from '../domain/kernel/time.ts';
import type { EventStore, Position } from '../event-store/port.ts';
import type { Clock } from '../platform/clock.ts';
import { createWakeup } from '../platform/wakeup.ts';
import { type Consumers, createPassage, type Passage } from './consumers.ts';
import { type ExpiringId, forgetExpiring, noteExpiring, readCutOff } from './expiring-ids.ts';
import { type ExpiredStream, retireStream } from './retire-stream.ts';

/** One kind of what expires. */
export interface Expiring {
  /** What it is called, and the projection whose rows it is found by. */
  readonly name: string;
  /**
   * The rows of `DueRow` that expired by `$1`, that all have passed (`$2`) and whose day is before `$3`, next after
   * `$4` and `$5` by `expires_at` and id, at most `$6`.
   */
  readonly due: string;
  /** `rows`, `oldest` and `first_position` of what had expired by `$1` and began before the day `$2`. */
  readonly overdue: string;
  /** Those of the ids `$1` that the projection has rows of, as `id`. */
  readonly present: string;
  readonly schemas: EventSchemas;
  /** The event that tells of ids and when each expired (ISO 8601). */
  tell(partnerId: string, expired: [id: string, at: string][]): { type: string; data: object };
}

export interface SweepOptions {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly log: Logger;
  readonly consumers: Consumers;
  /**
   * The first UTC day (`YYYY-MM-DD`) that is not closed yet: what began on it or later is not written down in any count
   * that outlives it. null: no day is closed.
   */
  readonly closedBefore: () => Promise<string | null>;
  /** Waits until a projection has come to a place; false after a time limit. */
  readonly projected: (name: string, position: Position | null) => Promise<boolean>;
  /** Told after each run what is still there long after it expired, and for how long the oldest has been so. */
  readonly onBlocked: (name: string, rows: number, seconds: number) => void;
  /** Ends a run between two batches. */
  readonly signal: AbortSignal;
  /** A run begins no batch after so many milliseconds; the next one goes on. */
  readonly forMs: number;
}

interface DueRow extends ExpiredStream, ExpiringId {
  /** `expires_at` as PostgreSQL writes it, in full. */
  readonly cursor: string;
  /** Whether all else that has expired in its stream may be deleted too. */
  readonly ready: boolean;
}

const BATCH = 500;
/** So few that who appends meanwhile hardly waits. */
const MAX_CONCURRENT_DELETIONS = 4;
/** What is there so long after it expired is told of. */
const OVERDUE = 10 * MINUTE;
/** Days are closed an hour after their end, and a little. */
const CLOSED_AFTER = 2 * HOUR;
const FIRST = { cursor: '-infinity', id: '00000000-0000-0000-0000-000000000000' };

/**
 * Deletes what has expired and tells of it: first the streams, then the event that says so, upon which the read model
 * drops its rows. A run that was cut off in between is completed by the next one, which finds the rows again; where a
 * rebuild has dropped them meanwhile, it finds the notes of `work.expiring`.
 */
export const sweep = async (kind: Expiring, options: SweepOptions): Promise<void> => {
  const { store, pool, projected } = options;
  const consumerProgress = createPassage(pool, options.consumers);
  try {
    // What the run before has told of is still to be found until then.
    if (!(await projected(kind.name, await store.head()))) return;
    const cutOff = await readCutOff(pool, kind.name, kind.present);
    if (cutOff.length > 0 && !(await writeDown(kind, options, cutOff))) return;
    await inBatches(kind, options, consumerProgress);
  } catch (error) {
    if (!options.signal.aborted) throw error;
  } finally {
    if (!options.signal.aborted) await tellOfBlocked(kind, options, consumerProgress);
  }
};

const inBatches = async (kind: Expiring, options: SweepOptions, consumerProgress: Passage): Promise<void> => {
  const { store, pool, signal, forMs } = options;
  const wakeup = createWakeup();
  const started = performance.now();
  for (let after = FIRST; ; ) {
    const begun = performance.now();
    if (signal.aborted || begun - started > forMs) return;
    const passed = await consumerProgress.passed();
    const closed = await options.closedBefore();
    if (passed === null || closed === null) return;
    const rows = await nextDue(kind, options, [passed, closed, after.cursor, after.id]);
    const ready = rows.filter((row) => row.ready);
    if (ready.length > 0) await noteExpiring(pool, kind.name, ready);
    const gone = await retire(ready, { store, consumerProgress, passed, signal });
    if (!(await writeDown(kind, options, gone))) return;
    const last = rows.at(-1);
    if (last === undefined || rows.length < BATCH) return;
    after = last;
    // Half the time belongs to others, the more the slower they make this.
    await wakeup.wait(performance.now() - begun, signal);
  }
};

const nextDue = async (
  { name, due }: Expiring,
  { pool, clock }: SweepOptions,
  values: readonly unknown[],
): Promise<DueRow[]> =>
  (
    await pool.query<DueRow>({
      name: `due ${name}`,
      text: due,
      values: [new Date(clock.now()), ...values, BATCH],
    })
  ).rows;

/** The rows whose streams no longer hold anything of them. */
const retire = async (
  rows: readonly DueRow[],
  parts: Parameters<typeof retireStream>[0],
): Promise<DueRow[]> => {
  const gone: DueRow[] = [];
  const streams = Map.groupBy(rows, ({ stream }) => stream);
  await sideBySide(streams.values(), async (ofStream) => {
    const [first] = ofStream;
    if (first && (await retireStream(parts, first))) gone.push(...ofStream);
  });
  return gone;
};

/** Tells of what is gone, and waits for the read model; false: it does not follow in time, and a later run goes on. */
const writeDown = async (
  kind: Expiring,
  options: SweepOptions,
  gone: readonly ExpiringId[],
): Promise<boolean> => {
  if (!(await options.projected(kind.name, await tell(kind, options, gone)))) return false;
  if (gone.length > 0) await forgetExpiring(options.pool, kind.name, gone);
  return true;
};

/** The place of the last event that tells of them; null: of none. */
const tell = async (
  { tell: eventOf, schemas }: Expiring,
  { store, clock }: SweepOptions,
  gone: readonly ExpiringId[],
): Promise<Position | null> => {
  const id = uuid();
  const context = { correlationId: id, causationId: id, at: clock.now() };
  const positions: (Position | null)[] = [];
  await sideBySide(
    Map.groupBy(gone, ({ partner_id }) => partner_id),
    async ([partnerId, rows]) => {
      const expired = rows.map((row): [string, string] => [row.id, isoTime(row.expires_at.getTime())]);
      positions.push(await tellExpired(store, partnerId, schemas, eventOf(partnerId, expired), context));
    },
  );
  if (positions.includes(null)) return store.head();
  return positions.reduce((last, cursor) => (last === null || (cursor ?? last) > last ? cursor : last), null);
};

/** A blocked deletion is never silent (architecture, rule 9). */
const tellOfBlocked = async (
  kind: Expiring,
  options: SweepOptions,
  consumerProgress: Passage,
): Promise<void> => {
  const { pool, clock, log, closedBefore, onBlocked } = options;
  const now = clock.now();
  const { rows } = await pool.query<{ rows: number; oldest: Date | null; first_position: string | null }>({
    name: `overdue ${kind.name}`,
    text: kind.overdue,
    values: [new Date(now - OVERDUE), utcDay(now - CLOSED_AFTER)],
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
    'expired long ago, and not deleted yet',
  );
};

/** A few at once; after a failure none is begun. */
const sideBySide = async <T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> => {
  const queue = (function* () {
    yield* items;
  })();
  const worker = async (): Promise<void> => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_DELETIONS }, worker));
};
