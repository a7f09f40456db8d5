import { resolve } from 'node:path';
import type pg from 'pg';
import type { DatabasePool } from 'slonik';
import { createKnownEpochs } from '../commands/epochs/epochs.ts';
import { createIntakeBatcher, type IntakeBatcher } from '../commands/lookup/enrichment-streams.ts';
import { createEndpointBatcher, type EndpointBatcher } from '../commands/webhooks/manage-endpoints.ts';
import { deliveryId } from '../commands/webhooks/queue-deliveries.ts';
import type { EventStore, Position } from '../event-store/port.ts';
import { createPostgresEventStore } from '../event-store/postgres/store.ts';
import { Tail } from '../event-store/tail.ts';
import { tracedStore } from '../event-store/traced-store.ts';
import { networkOf } from '../http/server/visitor.ts';
import { type Clock, systemClock } from '../platform/clock/clock.ts';
import { endsWithin } from '../platform/clock/waiting.ts';
import type { Config } from '../platform/config/config.ts';
import { openDataFolder } from '../platform/config/data-folder.ts';
import {
  bindKeys,
  createDayKeys,
  type DayKeys,
  keyedDigest,
  serviceKey,
} from '../platform/crypto/keyring.ts';
import { loadMasterKey, type MasterKey } from '../platform/crypto/master-key.ts';
import { startEmbeddedPostgres } from '../platform/embedded/embedded-postgres.ts';
import { folderOfDatabase } from '../platform/embedded/location.ts';
import { coalesceNext } from '../platform/limits/coalesce.ts';
import { MigrationError, migrate, NoData } from '../platform/postgres/migrate.ts';
import { endPool, openPool } from '../platform/postgres/pool.ts';
import { createSlonik } from '../platform/postgres/slonik.ts';
import { addressOf, Unreachable } from '../platform/postgres/unavailable.ts';
import type { Logger } from '../platform/telemetry/log.ts';
import { createLookupUses, type LookupUses } from '../processors/lookup/forget-results.ts';
import { createProviderCounts, type ProviderCounts } from '../processors/lookup/providers/provider-counts.ts';
import { createInstallEvidence, type InstallEvidence } from '../processors/sessions/install-evidence.ts';
import { createWebhookQueue, type WebhookQueue } from '../processors/webhooks/queue-admission.ts';
import { createProgress, type Progress } from '../projections/progress.ts';
import { type Cursors, createCursors } from '../read-api/cursor.ts';

/** Imported lazily, because the client is slow to load and only used with EVENTSTORE_URL. */
const eventStoreDb = () => import('../event-store/eventstoredb/store.ts');

/** A call to EventStoreDB takes a millisecond of the event loop. */
const HEAD_GAP_MS = 20;

interface StoreOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly hasOtherListeners: () => boolean;
  readonly aroundStore: (store: EventStore) => EventStore;
}

interface OpenedStore {
  readonly store: EventStore;
  readonly tail: Tail;
  readonly logStalls: () => number;
}

/** Opens the configured event store, or the one in PostgreSQL, and its tail. */
async function openStore(
  config: Config,
  url: string,
  { clock, log, hasOtherListeners, aroundStore }: StoreOptions,
): Promise<OpenedStore> {
  const { now } = clock;
  let stalls = 0;
  const onStall = (error: Error, after: Position | null): void => {
    stalls += 1;
    log.warn({ error: error.message, after: String(after) }, 'the log could not be read; retry scheduled');
  };
  const opened = config.EVENTSTORE_URL
    ? (await eventStoreDb()).createEventStoreDb({ url: config.EVENTSTORE_URL, now, onStall })
    : createPostgresEventStore({ url, now, hasOtherListeners, onStall });
  const traced = tracedStore(aroundStore(opened), config.EVENTSTORE_URL ? 'eventstoredb' : 'postgresql');
  // Each request for something unknown asks for the head, and EventStoreDB reads whole events for it.
  const head = coalesceNext(() => traced.head(), config.EVENTSTORE_URL ? HEAD_GAP_MS : 0);
  const store = { ...traced, head };
  const tail = new Tail({ store, now, log });
  return { store, tail, logStalls: () => stalls };
}

/** The shared resources of every command and role. */
export interface Runtime {
  readonly config: Config;
  readonly log: Logger;
  readonly clock: Clock;
  readonly dataDir: string;
  readonly databaseUrl: string;
  /** For hot queries with named statements. */
  readonly pool: pg.Pool;
  /** For all other queries. */
  readonly db: DatabasePool;
  readonly store: EventStore;
  /** Shared by all projections and processors of this process. */
  readonly tail: Tail;
  /** Whether other processes run, which need notifications of commits; true until this one knows better. */
  readonly otherProcesses: { run: () => boolean };
  /** The providers that the workers ask, in any process; none until the process knows better. */
  readonly providers: { configured: () => readonly string[] };
  /** Number of failed and retried reads of the log. */
  readonly logStalls: () => number;
  /** One per process, because two batchers would cause conflicts on the same streams. */
  readonly intake: IntakeBatcher;
  /** One per process, as for the intake. */
  readonly endpoints: EndpointBatcher;
  /** Progress of the read models. */
  readonly progress: Progress;
  /** Progress of the processors. */
  readonly processed: Progress;
  /** Returns the keyed digest of an address, for stream names. */
  readonly digest: (ip: string) => string;
  /** Signs the cursors of lists. */
  readonly cursors: Cursors;
  /** Seals secrets at rest. */
  readonly master: MasterKey;
  /** Seal visitors' addresses and labels. */
  readonly dayKeys: DayKeys;
  /** Records when saved results were last asked for. */
  readonly lookupUses: LookupUses;
  /** Counts what the providers answer. */
  readonly providerCounts: ProviderCounts;
  /** Notes what arrives of the trackers' pixels. */
  readonly evidence: InstallEvidence;
  /** Reserves slots in the partners' delivery queues. */
  readonly queue: WebhookQueue;
  close(): Promise<void>;
}

/** Replacements for tests. */
export interface Substitutes {
  readonly clock?: Clock;
  /** Wraps the event store to inject failures, hangs or counts. */
  readonly aroundStore?: (store: EventStore) => EventStore;
}

const NO_PROVIDERS: readonly string[] = [];
/** Time limit for a running read of the log at close. */
const TAIL_MS = 2_000;

/** A command found no data: only `serve` makes a database. The message is one line for the operator. */
export class NothingThere extends Error {}

const START_FIRST = 'Start the service on it first (doorplate serve)';

/** `where`: the database, and the variable that names it. */
export const noDataIn = (where: string): NothingThere =>
  new NothingThere(`no data in ${where}. ${START_FIRST}, or name the database that it uses`);

/** @throws NothingThere if a command finds no tables; Unreachable if a configured database does not answer; MigrationError */
const migrated = (config: Config, databaseUrl: string, mayBegin: boolean): Promise<unknown> =>
  migrate(databaseUrl, { mayBegin }).catch((error: unknown) => {
    if (error instanceof NoData) {
      const where = config.DATABASE_URL ? `DATABASE_URL (${addressOf(databaseUrl)})` : config.DATA_DIR;
      throw noDataIn(where);
    }
    // A failed migration is not caused by the address.
    if (error instanceof MigrationError || !config.DATABASE_URL) throw error;
    throw new Unreachable(['DATABASE_URL', ...config.databaseVariables].join(' with '), databaseUrl, error);
  });

/**
 * Refuses a command in a folder without data, because the embedded PostgreSQL would make some. @throws NothingThere
 */
export function refuseEmptyFolder({ DATABASE_URL }: Pick<Config, 'DATABASE_URL'>, dataDir: string): void {
  if (DATABASE_URL !== undefined || folderOfDatabase(dataDir) !== null) return;
  throw new NothingThere(
    `no server and no data in ${dataDir} (DATA_DIR). ${START_FIRST}, or set DATA_DIR to the folder that it uses`,
  );
}

const POOL = {
  max: 10,
  application_name: 'doorplate',
  // Claims, heartbeats and rates can be made again after a server crash loses them.
  options: '-c synchronous_commit=off',
  connectionTimeoutMillis: 2_000,
  query_timeout: 4_500,
};

const openQueue = (config: Config, pool: pg.Pool, clock: Clock, progress: Progress): WebhookQueue =>
  createWebhookQueue({
    pool,
    now: () => clock.now(),
    deliveryIdOf: deliveryId,
    maxPending: config.WEBHOOK_QUEUE_PER_PARTNER,
    maxBytes: config.WEBHOOK_PAYLOAD_BYTES_PER_PARTNER,
    hurry: () => progress.hurry(['deliveries']),
  });

interface Opened extends Required<Substitutes> {
  readonly mayBegin: boolean;
  readonly dataDir: string;
  readonly databaseUrl: string;
  /** The embedded server, which ends last; null: a configured one. */
  readonly postgres: { stop(): Promise<unknown> } | null;
}

async function openParts(
  config: Config,
  log: Logger,
  { mayBegin, clock, aroundStore, dataDir, databaseUrl, postgres }: Opened,
): Promise<Runtime> {
  await migrated(config, databaseUrl, mayBegin);
  const pool = openPool(databaseUrl, log, POOL);
  const db = await createSlonik(databaseUrl);
  const master = loadMasterKey(config, dataDir);
  await bindKeys(pool, master);
  const digest = keyedDigest(await serviceKey(pool, master, 'address-digest'));
  const otherProcesses = { run: () => true };
  const options = { clock, log, hasOtherListeners: () => otherProcesses.run(), aroundStore };
  const { store, tail, logStalls } = await openStore(config, databaseUrl, options);
  const lookupUses = createLookupUses({ pool, clock });
  const providerCounts = createProviderCounts({ pool, clock, log });
  const evidence = createInstallEvidence({ pool, clock, networkOf });
  const progress = createProgress({ url: databaseUrl, pool });
  const processed = createProgress({ url: databaseUrl, pool, table: 'work.processor' });
  return {
    config,
    log,
    clock,
    dataDir,
    databaseUrl,
    pool,
    db,
    store,
    logStalls,
    tail,
    otherProcesses,
    providers: { configured: () => NO_PROVIDERS },
    intake: createIntakeBatcher(store),
    endpoints: createEndpointBatcher(store),
    progress,
    processed,
    digest,
    cursors: createCursors(await serviceKey(pool, master, 'cursor'), createKnownEpochs(store)),
    master,
    lookupUses,
    providerCounts,
    evidence,
    dayKeys: createDayKeys({ pool, master, clock }),
    queue: openQueue(config, pool, clock, progress),
    close: async () => {
      await endsWithin(tail.close(), TAIL_MS);
      await store.close();
      await progress.close();
      await processed.close();
      await lookupUses.close();
      await providerCounts.close();
      await evidence.close();
      await Promise.all([endPool(pool), endPool(db)]);
      await postgres?.stop();
    },
  };
}

/**
 * Opens the runtime. `own`: a server, which makes what is missing; `join`: a command, beside a server or alone.
 * @throws NothingThere, and what opening the stores throws
 */
export async function openRuntime(
  config: Config,
  log: Logger,
  mode: 'own' | 'join',
  { clock = systemClock, aroundStore = (store) => store }: Substitutes = {},
): Promise<Runtime> {
  const dataDir = resolve(config.DATA_DIR);
  if (mode === 'join') refuseEmptyFolder(config, dataDir);
  openDataFolder(dataDir);
  const postgres = config.DATABASE_URL ? null : await startEmbeddedPostgres({ dataDir, log, mode });
  const databaseUrl = config.DATABASE_URL ?? (postgres?.url as string);
  try {
    return await openParts(config, log, {
      mayBegin: mode === 'own',
      clock,
      aroundStore,
      dataDir,
      databaseUrl,
      postgres,
    });
  } catch (error) {
    await postgres?.stop();
    throw error;
  }
}

/** Reads that include what was written before. `names`: projections. */
export interface ReadModels {
  /** Returns a wait for the store's current head; it resolves to false after a time limit. */
  readonly waitForHead: (names: readonly string[], limitMs?: number) => () => Promise<boolean>;
  /** Waits like `waitForHead`, without hurrying projections: polls are frequent and not urgent. */
  readonly waitForHeadPassively: (names: readonly string[]) => (limitMs: number) => Promise<boolean>;
  /** Returns a brief wait for a caller's own write; after its time limit the write is answered anyway. */
  readonly ownWrite: (names: readonly string[]) => (position: Position | null) => Promise<unknown>;
}

const OWN_WRITE_MS = 1_000;
const HEAD_MS = 4_000;

/** Waits for the read models. A projection that an event has stopped delays only its own reads. */
export function readModels({ store, progress }: Pick<Runtime, 'store' | 'progress'>): ReadModels {
  const { head } = store;
  return {
    waitForHead:
      (names, limitMs = HEAD_MS) =>
      async () =>
        progress.reached(names, await head(), limitMs),
    waitForHeadPassively: (names) => async (limitMs) =>
      progress.reached(names, await head(), limitMs, 'patient'),
    ownWrite: (names) => (position) => progress.reached(names, position, OWN_WRITE_MS),
  };
}
