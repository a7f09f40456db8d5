import { resolve } from 'node:path';
import type pg from 'pg';
import type { DatabasePool } from 'slonik';
import { createKnownEpochs } from '../commands/epochs/epochs.ts';
import { createIntakeBatcher, type IntakeBatcher } from '../commands/lookup/enrichment-streams.ts';
import { createEndpointBatcher, type EndpointBatcher } from '../commands/webhooks/manage-endpoints.ts';
import { deliveryId } from '../commands/webhooks/queue-deliveries.ts';
import type { EventStore } from '../event-store/port.ts';
import type { Tail } from '../event-store/tail.ts';
import { type Clock, systemClock } from '../platform/clock.ts';
import type { Config } from '../platform/config.ts';
import { openDataFolder } from '../platform/data-folder.ts';
import { createDayKeys, type DayKeys } from '../platform/day-keys.ts';
import { startEmbeddedPostgres } from '../platform/embedded/embedded-postgres.ts';
import { endPool } from '../platform/end-postgres.ts';
import { bindKeys, keyedDigest, serviceKey } from '../platform/keyring.ts';
import type { Logger } from '../platform/log.ts';
import { loadMasterKey, type MasterKey } from '../platform/master-key.ts';
import { MigrationError, migrate } from '../platform/migrate.ts';
import { openPool } from '../platform/open-pool.ts';
import { endsWithin } from '../platform/pause.ts';
import { createSlonik } from '../platform/slonik.ts';
import { Unreachable } from '../platform/unreachable.ts';
import { createLookupUses, type LookupUses } from '../processors/lookup/forget-results.ts';
import { createProviderCounts, type ProviderCounts } from '../processors/lookup/providers/provider-counts.ts';
import { createWebhookQueue, type WebhookQueue } from '../processors/webhooks/queue-admission.ts';
import { createProgress, type Progress } from '../projections/progress.ts';
import { type Cursors, createCursors } from '../read-api/cursor.ts';
import { openStore } from './open-store.ts';

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
  /** Whether other processes need notifications of commits, and how many serve the API; true and none until the process knows better. */
  readonly peers: { present: () => boolean; otherApis: () => number };
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

/** @throws Unreachable if a configured database does not answer; MigrationError */
const migrated = (config: Config, databaseUrl: string): Promise<unknown> =>
  migrate(databaseUrl).catch((error: unknown) => {
    // A failed migration is not caused by the address.
    if (error instanceof MigrationError || !config.DATABASE_URL) throw error;
    throw new Unreachable('DATABASE_URL', databaseUrl, error);
  });

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
  readonly dataDir: string;
  readonly databaseUrl: string;
  /** The embedded server, which ends last; null: a configured one. */
  readonly postgres: { stop(): Promise<unknown> } | null;
}

const openParts = async (
  config: Config,
  log: Logger,
  { clock, aroundStore, dataDir, databaseUrl, postgres }: Opened,
): Promise<Runtime> => {
  await migrated(config, databaseUrl);
  const pool = openPool(databaseUrl, log, POOL);
  const db = await createSlonik(databaseUrl);
  const master = loadMasterKey(config, dataDir);
  await bindKeys(pool, master);
  const digest = keyedDigest(await serviceKey(pool, master, 'address-digest'));
  const peers = { present: () => true, otherApis: () => 0 };
  const options = { clock, log, hasOtherListeners: () => peers.present(), aroundStore };
  const { store, tail, logStalls } = await openStore(config, databaseUrl, options);
  const lookupUses = createLookupUses({ pool, clock });
  const providerCounts = createProviderCounts({ pool, clock, log });
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
    peers,
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
    dayKeys: createDayKeys({ pool, master, clock }),
    queue: openQueue(config, pool, clock, progress),
    close: async () => {
      await endsWithin(tail.close(), TAIL_MS);
      await store.close();
      await progress.close();
      await processed.close();
      await lookupUses.close();
      await providerCounts.close();
      await Promise.all([endPool(pool), endPool(db)]);
      await postgres?.stop();
    },
  };
};

/** Opens the runtime. `own`: a server; `join`: a command, beside a server or alone. */
export const openRuntime = async (
  config: Config,
  log: Logger,
  mode: 'own' | 'join',
  { clock = systemClock, aroundStore = (store) => store }: Substitutes = {},
): Promise<Runtime> => {
  const dataDir = resolve(config.DATA_DIR);
  openDataFolder(dataDir);
  const postgres = config.DATABASE_URL ? null : await startEmbeddedPostgres({ dataDir, log, mode });
  const databaseUrl = config.DATABASE_URL ?? (postgres?.url as string);
  try {
    return await openParts(config, log, { clock, aroundStore, dataDir, databaseUrl, postgres });
  } catch (error) {
    await postgres?.stop();
    throw error;
  }
};
