/** Measures the unit costs of this machine, on an installation of its own that ends with the measurement. */
import { cpus, totalmem } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { v7 as uuid } from 'uuid';
import type { Runtime } from '../../bin/runtime.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import type { EventStore, NewEvent, Position } from '../../event-store/port.ts';
import { QUEUEING } from '../../processors/webhooks/queue-webhook-events.ts';
import { projectionGroups } from '../../projections/all.ts';
import { type Installation, startInstallation } from '../installation/installation.ts';
import {
  cpuOf,
  cpuOfFamily,
  memoryOfFamily,
  privateMemory,
  residentMemory,
} from '../installation/process-stats.ts';
import { type Figures, KINDS, type Kind, type UnitCost } from './figures.ts';
import { countEvents, prepare, quiet, type Run } from './workload.ts';

/** A real EventStoreDB with nothing else on it: the benchmark's. Without one the events are in PostgreSQL. */
export interface MeasuredNode {
  readonly url: string;
  readonly name: string;
  readonly pid: number;
}

export interface CalibrateOptions {
  /** Length of the load of each kind. */
  readonly seconds: number;
  readonly node?: MeasuredNode;
  /** Called when a step begins. */
  readonly onStep: (done: number, of: number) => void;
  /** Ends it early. */
  readonly signal: AbortSignal;
}

/** Requests a second: about half of what two cores answer, so that writes share commits. A smaller machine gets fewer. */
const RATES: Readonly<Record<Kind, number>> = {
  saved_lookup: 4_000,
  new_lookup: 250,
  visit: 800,
  reveal: 250,
  delivery: 400,
};
/** Share of a kind's seconds that is not measured: uncompiled code costs several times more. */
const WARM_UP = 0.5;
const HALF = 0.5;
const BACKLOG_RATE = 5_000;
const CALLERS = 64;
const REST_TIMES = 5;
const POLL_MS = 20;
const LIMIT_MS = 120_000;
const BYTES_A_MB = 1e6;
const VISITS = projectionGroups.visits.projections.map(({ name }) => name);
const STEPS = 2 * KINDS.length + 5;

/**
 * Runs short loads of each kind through an api and a workers process, for about twenty times `seconds`. Needs Linux, whose
 * /proc tells CPU times. @throws EmbeddedPostgresError; an Error when a request is refused, or when it is aborted
 */
export async function calibrate({ seconds, node, onStep, signal }: CalibrateOptions): Promise<Figures> {
  const measured_at = isoTime(Date.now());
  let done = 0;
  const step = (): void => {
    signal.throwIfAborted();
    onStep(done, STEPS);
    done += 1;
  };
  step();
  const installation = await startInstallation(node ? { EVENTSTORE_URL: node.url } : {});
  const { runtime } = installation;
  const meters = metersOf(installation, node);
  try {
    const run = await prepare(installation);
    for (const kind of KINDS) {
      step();
      await run(kind, RATES[kind], seconds * WARM_UP);
    }
    await quiet(runtime);
    step();
    const rest = await coresAtRest(meters, seconds);
    const kinds = {} as Record<Kind, UnitCost>;
    let connected = 0;
    for (const kind of KINDS) {
      step();
      kinds[kind] = await costOf({ installation, meters, rest }, run, kind, seconds);
      connected = Math.max(connected, await connections(installation));
    }
    // Each of its requests was a visit too.
    kinds.delivery = difference(kinds.delivery, kinds.visit);
    const memory = {
      api: residentMemory(installation.api.pid) * BYTES_A_MB,
      workers: residentMemory(installation.workers.pid) * BYTES_A_MB,
    };
    const postgresql = { rest_cores: rest.postgresql, ...(await postgresMemory(installation)) };
    step();
    await installation.workers.stop();
    const withoutWorkers = await connections(installation);
    const group_events_per_second = await catchUp(installation, run, seconds, OF_VISITS);
    step();
    const fanned_out_per_second = await catchUp(installation, run, seconds * HALF, OF_WEBHOOKS);
    await installation.workers.stop();
    await installation.api.stop();
    const own = await connections(installation);
    step();
    return {
      measured_at,
      machine: {
        cores: cpus().length,
        cpu: cpus()[0]?.model || 'unknown',
        memory_gib: Math.round(totalmem() / 2 ** 30),
      },
      store: node?.name ?? (await versionOf(installation)),
      kinds,
      processes: {
        api: { rest_cores: rest.api, memory_bytes: memory.api, connections: withoutWorkers - own },
        workers: {
          rest_cores: rest.workers,
          memory_bytes: memory.workers,
          connections: connected - withoutWorkers,
        },
      },
      postgresql,
      node_memory_bytes: node ? residentMemory(node.pid) * BYTES_A_MB : 0,
      group_events_per_second,
      fanned_out_per_second,
      appends_per_second: await appendsOf(runtime.store, seconds * HALF),
    };
  } finally {
    await installation.end();
  }
}

type Roles = UnitCost['cpu'];
/** Seconds of CPU so far. */
type Meters = () => Roles;

const metersOf =
  ({ api, workers, postgresPid }: Installation, node: MeasuredNode | undefined): Meters =>
  () => ({
    api: cpuOf(api.pid),
    workers: cpuOf(workers.pid),
    postgresql: cpuOfFamily(postgresPid),
    eventstoredb: node ? cpuOf(node.pid) : 0,
  });

const ofEach = (of: (role: keyof Roles) => number): Roles => ({
  api: of('api'),
  workers: of('workers'),
  postgresql: of('postgresql'),
  eventstoredb: of('eventstoredb'),
});

/** The median of some short times: code that is compiled late, or a job of the upkeep, is not rest. */
async function coresAtRest(meters: Meters, seconds: number): Promise<Roles> {
  const seen: Roles[] = [];
  while (seen.length < REST_TIMES) {
    const before = meters();
    await pause((seconds * 1_000) / REST_TIMES);
    const after = meters();
    seen.push(ofEach((role) => ((after[role] - before[role]) * REST_TIMES) / seconds));
  }
  return ofEach((role) => seen.map((one) => one[role]).sort((a, b) => a - b)[REST_TIMES >> 1] ?? 0);
}

interface Bench {
  readonly installation: Installation;
  readonly meters: Meters;
  readonly rest: Roles;
}

/** One operation's share of a load and of all that followed it, without what the processes use at rest. */
async function costOf(
  { installation, meters, rest }: Bench,
  run: Run,
  kind: Kind,
  seconds: number,
): Promise<UnitCost> {
  const { runtime } = installation;
  const [before, cpuBefore, head, began] = [
    await sizes(installation),
    meters(),
    await runtime.store.head(),
    performance.now(),
  ];
  const answers = await run(kind, RATES[kind], seconds);
  await quiet(runtime);
  const passed = (performance.now() - began) / 1_000;
  const [cpuAfter, after] = [meters(), await sizes(installation)];
  const { events, applied } = await countEvents(runtime.store, head, await runtime.store.head());
  const each = (difference: number): number => Math.max(0, difference) / answers;
  return {
    cpu: ofEach((role) => each(cpuAfter[role] - cpuBefore[role] - rest[role] * passed) * 1e6),
    log_bytes: each(after.log - before.log),
    table_bytes: each(after.tables - before.tables),
    wal_bytes: each(after.wal - before.wal),
    events: each(events),
    applied: {
      lookups: each(applied.lookups),
      visits: each(applied.visits),
      webhooks: each(applied.webhooks),
    },
  };
}

/** Positions of EventStoreDB are bytes of its log. */
async function sizes({ runtime: { pool, store, config } }: Installation) {
  const { rows } = await pool.query<{ log: string; all: string; wal: string }>(
    `select pg_total_relation_size('eventlog.event') + pg_total_relation_size('eventlog.stream') as log,
            pg_database_size(current_database()) as all, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as wal`,
  );
  const { log, all, wal } = rows[0] ?? { log: 0, all: 0, wal: 0 };
  return {
    log: config.EVENTSTORE_URL ? Number(await store.head()) : Number(log),
    tables: Number(all) - Number(log),
    wal: Number(wal),
  };
}

function difference(whole: UnitCost, part: UnitCost): UnitCost {
  const less = (a: number, b: number): number => Math.max(0, a - b);
  const { applied } = whole;
  return {
    cpu: ofEach((role) => less(whole.cpu[role], part.cpu[role])),
    log_bytes: less(whole.log_bytes, part.log_bytes),
    table_bytes: less(whole.table_bytes, part.table_bytes),
    wal_bytes: less(whole.wal_bytes, part.wal_bytes),
    events: less(whole.events, part.events),
    applied: {
      lookups: less(applied.lookups, part.applied.lookups),
      visits: less(applied.visits, part.applied.visits),
      webhooks: less(applied.webhooks, part.applied.webhooks),
    },
  };
}

const CLIENTS = "from pg_stat_activity where backend_type = 'client backend'";

async function connections({ runtime: { pool } }: Installation): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(`select count(*)::int as count ${CLIENTS}`);
  return rows[0]?.count ?? 0;
}

async function postgresMemory({ runtime: { pool }, postgresPid }: Installation) {
  const { rows } = await pool.query<{ pid: number }>(`select pid ${CLIENTS}`);
  const ofClients = rows.reduce((sum, { pid }) => sum + privateMemory(pid), 0);
  return {
    memory_bytes: Math.max(0, memoryOfFamily(postgresPid) - ofClients),
    bytes_a_connection: ofClients / Math.max(1, rows.length),
  };
}

async function versionOf({ runtime: { pool } }: Installation): Promise<string> {
  const { rows } = await pool.query<{ server_version: string }>('show server_version');
  return `PostgreSQL ${rows[0]?.server_version}`;
}

/** What a workers process, started again, has to catch up with. */
interface Backlog {
  readonly kind: Kind;
  readonly reached: (runtime: Runtime, head: Position) => Promise<unknown>;
}
const OF_VISITS: Backlog = {
  kind: 'visit',
  reached: ({ progress }, head) => progress.reached(VISITS, head, LIMIT_MS),
};
const OF_WEBHOOKS: Backlog = {
  kind: 'delivery',
  reached: ({ processed }, head) => processed.reached([QUEUEING.name], head, LIMIT_MS),
};

/** Events of the group `visits` a second that a workers process catches up with, from the first that it applies. */
async function catchUp(
  { runtime, workers }: Installation,
  run: Run,
  seconds: number,
  { kind, reached }: Backlog,
): Promise<number> {
  const { store, pool } = runtime;
  await workers.stop();
  await run(kind, BACKLOG_RATE, seconds);
  const head = (await store.head()) as Position;
  const position = async (): Promise<Position> => {
    const { rows } = await pool.query<{ position: string }>(
      "select coalesce(position, 0) as position from read.projection where name = 'sessions'",
    );
    return BigInt(rows[0]?.position ?? 0) as Position;
  };
  const from = await position();
  const { applied } = await countEvents(store, from, head);
  workers.start();
  const starting = workers.ready();
  starting.catch(() => undefined);
  for (const deadline = performance.now() + LIMIT_MS; (await position()) === from; await pause(POLL_MS)) {
    if (performance.now() > deadline) throw new Error('no workers process took over');
  }
  // The first batch was applied within the last poll.
  const began = performance.now() - POLL_MS;
  await reached(runtime, head);
  const took = performance.now() - began;
  await starting;
  await quiet(runtime);
  return (applied.visits * 1_000) / took;
}

/** Single events a second, each to a stream of its own. */
async function appendsOf(store: EventStore, seconds: number): Promise<number> {
  const until = performance.now() + seconds * 1_000;
  const event = (): NewEvent => ({
    id: uuid(),
    type: 'capacity.Appended.v1',
    data: { text: 'x'.repeat(200) },
    metadata: { $correlationId: uuid(), $causationId: uuid(), at: isoTime(Date.now()) },
  });
  const callers = Array.from({ length: CALLERS }, async () => {
    let appends = 0;
    for (; performance.now() < until; appends += 1)
      await store.append(`capacity-${uuid()}`, 'no_stream', [event()]);
    return appends;
  });
  const each = await Promise.all(callers);
  return each.reduce((sum, count) => sum + count, 0) / seconds;
}
