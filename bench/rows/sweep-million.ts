/** One measurement in one file: how the sessions are written, how the sweep is seen, and the line of the report. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Runtime } from '../../bin/runtime.ts';
import { ownContext } from '../../commands/handle.ts';
import { closeTrackerDay } from '../../commands/usage/close-usage.ts';
import { DAY, isoTime, utcDay } from '../../domain/kernel/time.ts';
import { addressOf } from '../support/addresses.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import { generatorNote, type Loaded, load } from '../support/load.ts';
import { type Product, startProduct } from '../support/product.ts';
import { alternate, compared, median } from '../support/statistics.ts';
import { capture, createTracker } from '../support/tracking.ts';

const RATE = 200;
const CONNECTIONS = 64;
const MOST_ROUNDS = 3;
/** A hundred thousand, as with --quick, are gone within one run of the sweep. */
const MANY = 1_000_000;
/** The sweep runs for 45 seconds of each minute. */
const SWEEPING_SECONDS = 10;
const RESTING_SECONDS = 7;
/** Longer than a batch of the sweep and the pause after it. */
const RESTED_MS = 3_000;
const POLL_MS = 100;
const LIMIT_MS = 240_000;
/** Log positions of the sessions, beyond those of a new service and before those of later events. */
const FIRST = 1_000;
const BATCH = 10_000;
const OTHERS = 3;
/** They began on this many days, and the last of them expired a day ago. */
const DAYS = 2;
const EXPIRED_MS = 31 * DAY;

/** A measurement while the sweep ran, or while it did not. */
interface Measured extends Loaded {
  /** Sessions that the sweep deleted in a second. */
  readonly sweptPerSecond: number;
}

/**
 * The p99 of captures at a constant rate while the upkeep of the same process sweeps a million expired sessions, each in a stream
 * of its own, against that between two runs of the sweep. Each round takes a minute, because the sweep begins once a minute. The
 * sessions are copies of a captured one, written to the log and to the read model directly.
 */
export const sweepMillionRow: Row = {
  name: 'sweep-million',
  run: async (bench) => {
    const product = await startProduct(1);
    bench.defer(product.end);
    try {
      const tracker = await createTracker(product);
      return await product.beside(async (runtime) => {
        bench.say(`making ${bench.effort.saved} expired sessions`);
        await fill(runtime, product, tracker, bench.effort.saved);
        return [await measure(bench, product, tracker, runtime.pool)];
      });
    } finally {
      await product.end();
    }
  },
};

const fill = async (
  { databaseUrl, store, clock }: Runtime,
  product: Product,
  tracker: string,
  count: number,
): Promise<void> => {
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  try {
    // All consumers are past the positions below, and handle none of the copies.
    await db.query(`alter table eventlog.event alter column position restart with ${FIRST + 2 * count}`);
    await capture(product, tracker, addressOf(0), { plan: 'pro', n: 0 });
    await product.followed();
    const { rows } = await db.query('select session_id, partner_id from read.session');
    const [{ session_id, partner_id }] = rows as [{ session_id: string; partner_id: string }];
    const partners = [partner_id, ...Array.from({ length: OTHERS }, () => randomUUID())];
    const first = clock.now() - EXPIRED_MS - DAYS * DAY;
    const step = (DAYS * DAY) / count;
    for (let done = 0; done < count; done += BATCH) {
      const values = [session_id, partners, done, done + BATCH - 1, isoTime(first), `${step} ms`];
      await db.query({ name: 'copy_session', text: COPY, values });
    }
    // As autovacuum would some time after the last of them.
    await db.query('vacuum (analyze) eventlog.event, eventlog.stream, read.session');
    await db.query('checkpoint');
    // Nothing is swept before the counts of its day are closed.
    await closeTrackerDay(store, utcDay(clock.now() - 2 * DAY), [], ownContext(clock));
  } finally {
    await db.end();
  }
};

const ISO = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`;

/** Copies the session `$1` under the numbers `$3` to `$4`, each `$6` later than the one before; number 0 begins at `$5`. */
const COPY = `
  with model as materialized (
    select s.session_id, to_jsonb(s) as session, e.type, e.data::jsonb as data, e.metadata::jsonb as metadata
    from read.session s join eventlog.event e on e.position = s.position where s.session_id = $1),
  made as materialized (
    select ${FIRST} + n as position, uuidv7(at - now()) as session_id, uuidv7(at - now()) as id,
           'tab-' || gen_random_uuid() as stream,
           jsonb_build_object('partner_id', ($2::uuid[])[1 + n % cardinality($2::uuid[])],
             'first_seen_at', to_char(at, ${ISO}), 'expires_at', to_char(at + interval '30 days', ${ISO})) as facts
    from (select n, ($5::timestamptz at time zone 'UTC') + n * $6::interval as at
          from generate_series($3::int, $4::int) n) numbered),
  event as (
    insert into eventlog.event (position, stream, revision, id, type, data, metadata) overriding system value
    select position, stream, 0, id, type, (data || facts || jsonb_build_object('session_id', made.session_id))::json,
           (metadata || jsonb_build_object('expires_at', facts->'expires_at', 'partner_id', facts->'partner_id'))::json
    from made, model order by position),
  stream as (
    insert into eventlog.stream (name, revision) select stream, 0 from made order by position)
  insert into read.session
  select row.* from made, model, jsonb_populate_record(null::read.session, session || facts || jsonb_build_object(
    'session_id', made.session_id, 'stream', stream, 'position', position, 'last_position', position,
    'last_seen_at', facts->'first_seen_at')) row
  order by position`;

const measure = async (bench: Bench, product: Product, tracker: string, pool: pg.Pool): Promise<Line> => {
  const { saved, rounds } = bench.effort;
  const swept = async (): Promise<number> => {
    const { rows } = await pool.query(
      'select position from read.session order by expires_at, session_id limit 1',
    );
    const done = Number(rows[0]?.position) - FIRST;
    if (done >= saved) throw new Error('all sessions were swept before the measurement ended');
    return done;
  };
  const isSweeping = async (): Promise<boolean> => {
    const before = await swept();
    for (const until = performance.now() + RESTED_MS; performance.now() < until; await pause(POLL_MS))
      if ((await swept()) !== before) return true;
    return false;
  };
  /** Repeated where the sweep did not run, or rest, from its beginning to its end. */
  const measureWhile = async (sweeps: boolean): Promise<Measured> => {
    const seconds = sweeps ? SWEEPING_SECONDS : RESTING_SECONDS;
    for (const until = performance.now() + LIMIT_MS; performance.now() < until; ) {
      if ((await isSweeping()) !== sweeps) continue;
      const [from, began] = [await swept(), performance.now()];
      const requests = { of: 'captures', tracker, first: bench.freshAddresses(RATE * 2 * seconds) } as const;
      const plan = { port: product.port, requests, connections: CONNECTIONS, rate: RATE, expect: 204 };
      const loaded = await load({ ...plan, warmUpSeconds: 1, seconds }, product.meters);
      const sweptPerSecond = (((await swept()) - from) * 1_000) / (performance.now() - began);
      if (sweeps ? !(await isSweeping()) : sweptPerSecond > 0) continue;
      bench.say(
        `p99 ${loaded.p99.toFixed(1)} ms, p50 ${loaded.p50.toFixed(1)} ms, ${sweptPerSecond.toFixed(0)} swept/s, cores ${coresOf(loaded)}`,
      );
      return { ...loaded, sweptPerSecond };
    }
    throw new Error(`the sweep did not ${sweeps ? 'run' : 'rest'} long enough`);
  };
  const { a: resting, b: sweeping } = await alternate(
    saved < MANY ? 1 : Math.min(rounds, MOST_ROUNDS),
    () => measureWhile(false),
    () => measureWhile(true),
  );
  const middle = (some: readonly Measured[], of: (one: Measured) => number, digits = 0): string =>
    median(some.map(of)).toFixed(digits);
  const name = saved.toLocaleString('en');
  return {
    row: `captures during a sweep of ${name} sessions`,
    target: { atMost: 1.5 },
    ...compared(
      { of: `p99 of captures at ${RATE}/s while sessions are swept`, values: sweeping.map(({ p99 }) => p99) },
      { of: 'p99 between two runs of the sweep', values: resting.map(({ p99 }) => p99) },
      ' ms',
    ),
    notes: [
      `${middle(sweeping, (one) => one.sweptPerSecond)} sessions a second were swept`,
      `p50 ${middle(sweeping, ({ p50 }) => p50, 1)} ms, and ${middle(resting, ({ p50 }) => p50, 1)} ms without`,
      generatorNote(sweeping, resting),
    ],
  };
};

const coresOf = ({ cpuMicros }: Loaded): string =>
  Object.entries(cpuMicros)
    .map(([meter, micros]) => `${meter} ${((micros * RATE) / 1e6).toFixed(2)}`)
    .join(', ');

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
