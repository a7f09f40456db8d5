/**
 * Does the same work on one event store or the other, as fast as its callers can. Argument: `Side`. Prints `{pid, missing}` when its
 * log of `events` is filled (`pid` of its PostgreSQL), then takes lines `{work, seconds}` and answers each with `{done, seconds}`,
 * a projection also with the events that it missed; ends when its input ends.
 */
import { createInterface } from 'node:readline';
import pg from 'pg';
import { v7 as uuid } from 'uuid';
import { openRuntime } from '../../bin/runtime.ts';
import { postmasterOf } from '../../cli/installation/data-folder.ts';
import { type NewEvent, type Position, WrongExpectedRevision } from '../../event-store/port.ts';
import { loadConfig } from '../../platform/config/config.ts';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import type { Projection } from '../../projections/projection.ts';
import { startProjections } from '../../test/support/leading.ts';
import { addressOf } from '../support/addresses.ts';

export interface Side {
  readonly store: 'doorplate' | 'emmett';
  /** For PostgreSQL. */
  readonly folder: string;
  /** For Doorplate: another store than PostgreSQL. */
  readonly env: Readonly<Record<string, string>>;
  /** Events in the log that the projection reads. */
  readonly events: number;
}

export type Work = 'appends' | 'conflicts' | 'reads' | 'projection';

export interface Done {
  readonly done: number;
  readonly seconds: number;
  /** Of a projection: events that it passed over. */
  readonly missed: number;
}

/** The operations, in each store's own words. `expected`: the number of events that the stream has. */
interface Store {
  append(stream: string, expected: number, events: readonly NewEvent[]): Promise<unknown>;
  isConflict(error: unknown): boolean;
  /** @returns the number of events */
  read(stream: string): Promise<number>;
  /** Counts the events of each stream into a table, from an empty table and the start of the log. @returns seconds */
  project(): Promise<number>;
  /** The events counted in the table. */
  counted(): Promise<number>;
  close(): Promise<void>;
}

const CALLERS = 64;
const OF_A_STREAM = 10;
const FILLERS = 8;
const TYPE = 'bench.Appended.v1';
const PROJECTED_MS = 120_000;
/** Of one batch: the product's own. */
const BATCH = 500;
/** Above the ten of pg, so that commits share a sync of the log. */
const EMMETT_CONNECTIONS = 32;
/** Of Emmett's errors. */
const CONFLICT = 412;

const side = JSON.parse(process.argv[2] ?? '') as Side;
const log = createLogger({ level: 'warn', destination: 'stderr' });

const openDoorplate = async (): Promise<Store> => {
  const runtime = await openRuntime(loadConfig({ DATA_DIR: side.folder, ...side.env }), log, 'own');
  const { store, pool, progress } = runtime;
  await pool.query('create table read.bench_stream (stream text primary key, events int not null)');
  /** A progress that was reported is never taken back, so each run has a name of its own. */
  const projectionOf = (name: string): Projection => ({
    name,
    tables: ['bench_stream'],
    types: [TYPE],
    apply: async (events, db) => {
      const counts = Map.groupBy(events, ({ stream }) => stream);
      await db.query({
        name: 'bench_stream',
        text: `insert into bench_stream as present (stream, events) select * from unnest($1::text[], $2::int[])
               on conflict (stream) do update set events = present.events + excluded.events`,
        values: [[...counts.keys()], [...counts.values()].map(({ length }) => length)],
      });
    },
  });
  const start = await store.head();
  let end: Position | null = null;
  return {
    append: (stream, expected, events) =>
      store.append(stream, expected === 0 ? 'no_stream' : expected - 1, events),
    isConflict: (error) => error instanceof WrongExpectedRevision,
    read: async (stream) => (await Array.fromAsync(store.readStream(stream))).length,
    project: async () => {
      end ??= await store.head();
      const name = `bench ${uuid()}`;
      await pool.query('truncate read.bench_stream');
      await pool.query('insert into read.projection (name, position) values ($1, $2)', [name, start]);
      const { promise: running, resolve } = Promise.withResolvers<number>();
      const options = { ...runtime, url: runtime.databaseUrl, onRunning: () => resolve(performance.now()) };
      const projections = startProjections([projectionOf(name)], options);
      const begin = await running;
      if (end === null || !(await progress.reached([name], end, PROJECTED_MS))) throw new Error('too slow');
      const seconds = (performance.now() - begin) / 1_000;
      await projections.stop();
      return seconds;
    },
    counted: () => countedIn(pool, 'read.bench_stream'),
    close: runtime.close,
  };
};

const openEmmett = async (): Promise<Store> => {
  const { getPostgreSQLEventStore, postgreSQLRawSQLProjection } = await import(
    '@event-driven-io/emmett-postgresql'
  );
  const postgres = await startEmbeddedPostgres({ dataDir: side.folder, log });
  const pool = new pg.Pool({ connectionString: postgres.url, max: EMMETT_CONNECTIONS });
  const store = getPostgreSQLEventStore(postgres.url, { connectionOptions: { pool } });
  await store.schema.migrate();
  await pool.query('create table bench_stream (stream text primary key, events int not null)');
  const projection = postgreSQLRawSQLProjection({
    name: 'bench',
    canHandle: [TYPE],
    // A stream's name holds letters, digits and hyphens alone.
    evolve: ({ metadata }) =>
      `insert into bench_stream as present values ('${metadata.streamName}', 1)
       on conflict (stream) do update set events = present.events + 1`,
  });
  return {
    append: (stream, expected, events) =>
      store.appendToStream(
        stream,
        events.map(({ type, data, metadata }) => ({ type, data, metadata })),
        { expectedStreamVersion: BigInt(expected) },
      ),
    // The package holds a copy of the error's class.
    isConflict: (error) => (error as { errorCode?: number }).errorCode === CONFLICT,
    read: async (stream) => (await store.readStream(stream)).events.length,
    project: async () => {
      await pool.query('truncate bench_stream');
      const consumer = store.consumer({
        stopWhen: { noMessagesLeft: true },
        // It waits that long after each batch.
        pulling: { batchSize: BATCH, pullingFrequencyInMs: 1 },
      });
      consumer.projector({ processorId: uuid(), projection });
      const begin = performance.now();
      await consumer.start();
      return (performance.now() - begin) / 1_000;
    },
    counted: () => countedIn(pool, 'bench_stream'),
    close: async () => {
      await pool.end();
      await postgres.stop();
    },
  };
};

const countedIn = async (pool: pg.Pool, table: string): Promise<number> =>
  Number((await pool.query(`select coalesce(sum(events), 0) as n from ${table}`)).rows[0].n);

/** As large as the event of a submission. */
const newEvent = (number: number): NewEvent => ({
  id: uuid(),
  type: TYPE,
  data: {
    ip: addressOf(number),
    round: 1,
    kind: 'first',
    requested_at: new Date().toISOString(),
    reservation: { reservation_id: uuid(), partner_id: uuid(), key_id: uuid() },
  },
  metadata: { $correlationId: uuid(), $causationId: uuid(), at: new Date().toISOString() },
});

const store = await (side.store === 'emmett' ? openEmmett() : openDoorplate());
const run = uuid();
const filled = Array.from({ length: side.events / OF_A_STREAM }, (_, nth) => `bench-${run}-${nth}`);

/** Calls by so many at once, each until this returns false. @returns how many calls there were */
const inParallel = async (callers: number, call: (caller: number) => Promise<boolean>): Promise<number> => {
  let calls = 0;
  const callAgain = async (_: unknown, caller: number): Promise<void> => {
    while (await call(caller)) calls += 1;
  };
  await Promise.all(Array.from({ length: callers }, callAgain));
  return calls;
};

let next = 0;
await inParallel(FILLERS, async () => {
  const stream = filled[next++];
  if (stream !== undefined)
    await store.append(
      stream,
      0,
      Array.from({ length: OF_A_STREAM }, (_, n) => newEvent(n)),
    );
  return stream !== undefined;
});

const writing = Array.from({ length: CALLERS }, () => ({ stream: '', events: OF_A_STREAM }));
const calls: Readonly<Record<Exclude<Work, 'projection'>, (caller: number) => Promise<void>>> = {
  appends: async (caller) => {
    const current = writing[caller] as (typeof writing)[number];
    if (current.events === OF_A_STREAM) Object.assign(current, { stream: `bench-${uuid()}`, events: 0 });
    await store.append(current.stream, current.events, [newEvent(caller)]);
    current.events += 1;
  },
  conflicts: async () => {
    try {
      await store.append(filled[next++ % filled.length] as string, OF_A_STREAM - 1, [newEvent(next)]);
    } catch (error) {
      if (store.isConflict(error)) return;
      throw error;
    }
    throw new Error('a wrong expected revision was accepted');
  },
  reads: async () => {
    const events = await store.read(filled[next++ % filled.length] as string);
    if (events !== OF_A_STREAM) throw new Error(`a stream of ${OF_A_STREAM} events was read with ${events}`);
  },
};

const measure = async (work: Work, seconds: number): Promise<Done> => {
  if (work === 'projection') {
    const took = await store.project();
    const counted = await store.counted();
    return { done: counted, seconds: took, missed: side.events - counted };
  }
  const begin = performance.now();
  const until = begin + seconds * 1_000;
  const done = await inParallel(CALLERS, async (caller) => {
    if (performance.now() >= until) return false;
    await calls[work](caller);
    return true;
  });
  return { done, seconds: (performance.now() - begin) / 1_000, missed: 0 };
};

process.stdout.write(`${JSON.stringify({ pid: postmasterOf(side.folder) })}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const { work, seconds } = JSON.parse(line) as { work: Work; seconds: number };
  process.stdout.write(`${JSON.stringify(await measure(work, seconds))}\n`);
}
await store.close();
process.exit(0);
