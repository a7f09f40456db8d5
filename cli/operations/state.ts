/** Reads what `doorplate status` looks at: the state of the whole installation, read and never written. */
import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { connect } from 'node:tls';
import type pg from 'pg';
import { CONSUMERS, GROUP_NAMES } from '../../bin/groups.ts';
import { serviceUrl } from '../../bin/modules/domains.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import type { Found } from '../../operations/condition.ts';
import { conditionsOf, findReported } from '../../operations/conditions.ts';
import type { Certificate, ConsumerState, Disk, Facts } from '../../operations/facts.ts';
import type { Config } from '../../platform/config/config.ts';
import { folderOfDatabase } from '../../platform/embedded/location.ts';
import { readDatabaseSize } from '../../platform/postgres/disk-samples.ts';
import { createProgress } from '../../projections/progress.ts';
import { readDue } from '../../projections/webhooks/deliveries/health-readers.ts';
import { readQueueFill } from '../../projections/webhooks/deliveries/queue-readers.ts';
import { listPositions, listStopped } from '../../queries/consumers.ts';
import { countDomains, type DomainCounts } from '../../queries/domains/directory.ts';
import { countOpenWork, type ProviderState, readProviderStates } from '../../queries/lookup/lookups.ts';
import { type OperatorWebhookState, readOperatorWebhook } from '../../queries/operations/operator-webhook.ts';
import { readProcesses, readSessions } from '../../queries/processes.ts';
import { awayStore, type OpenStores, readStores } from './stores.ts';

/** How much of a ceiling is used: by all partners, or by the one that is nearest to it. */
export interface Ceiling {
  readonly name: string;
  readonly used: number;
  readonly limit: number;
}

/** The state of an installation, and what is wrong with it. */
export interface State extends Facts {
  readonly queues: {
    readonly due: number;
    readonly oldest_due_at: string | null;
    readonly breakers_open: number;
  };
  readonly providers: readonly ProviderState[];
  readonly domains: DomainCounts;
  readonly ceilings: readonly Ceiling[];
  readonly operator_webhook: OperatorWebhookState & { readonly configured: boolean };
  /** Errors first. */
  readonly problems: readonly Found[];
}

/** Reads everything; a part that cannot be read does not delay or hide the others. */
export async function readState(config: Config, stores: OpenStores): Promise<State> {
  const at = Date.now();
  const { pool, store, url } = stores;
  const states = await readStores(config, stores);
  const isUp = (kind: Facts['stores'][number]['kind']): boolean =>
    states.every((one) => one.kind !== kind || one.error === null);
  const unread: string[] = [];
  const read = async <T>(what: string, whenUp: boolean, work: () => Promise<T>, otherwise: T): Promise<T> => {
    if (!whenUp) return otherwise;
    return await work().catch((error: Error) => {
      unread.push(`${what}: ${error.message}`);
      return otherwise;
    });
  };
  const up = isUp('postgresql');
  const [processes, consumers, due, providers, size, disk, certificates, domains, ceilings, webhook, found] =
    await Promise.all([
      read('processes', up, () => readProcesses(pool), []),
      read('consumers', up && isUp('eventstoredb'), () => readConsumers({ pool, store, url }, at), []),
      read('queues', up, () => readDue(pool, null, at), EMPTY_STATE.queues),
      read('providers', up, () => readProviderStates(pool, config.providers, at), []),
      read('database size', up, () => readDatabaseSize(pool, at), NO_SIZE),
      readDisk(config),
      readCertificates(config),
      read('domains', up, () => countDomains(pool), EMPTY_STATE.domains),
      read('ceilings', up, () => readCeilings(config, pool), []),
      read('operator webhook', up, () => readWebhook(config, pool), EMPTY_STATE.operator_webhook),
      Promise.all(
        conditionsOf('status').map((one) =>
          read(one.code, up, () => findReported(one, { pool, now: at, partnerId: null, config }), []),
        ),
      ),
    ]);
  const facts: Facts = {
    at,
    stores: states,
    processes,
    unled: GROUP_NAMES.filter((name) => !processes.some(({ leads }) => leads.includes(name))),
    projections: ofKind(consumers, 'projection'),
    processors: ofKind(consumers, 'processor'),
    disk: { ...size, ...disk },
    certificates,
    unread,
  };
  const problems = [...problemsIn(facts), ...found.flat()];
  return {
    ...facts,
    queues: { ...due, breakers_open: problems.filter(({ code }) => code === 'endpoint_held').length },
    providers,
    domains,
    ceilings,
    operator_webhook: webhook,
    problems: errorsFirst(problems),
  };
}

const ofKind = (consumers: readonly ConsumerState[], kind: string): ConsumerState[] =>
  consumers.flatMap((one) =>
    one.name.startsWith(kind) ? [{ ...one, name: one.name.slice(kind.length + 1) }] : [],
  );

/** Returns the problems that the facts alone show. */
const problemsIn = (facts: Facts): Found[] => conditionsOf('status').flatMap((one) => one.findInFacts(facts));

const errorsFirst = (found: readonly Found[]): Found[] =>
  found.toSorted((a, b) => Number(a.severity === 'warning') - Number(b.severity === 'warning'));

/** Reads what can be read without stores, as when the embedded database does not start on a full disk. */
export async function stateWithoutStores(config: Config, error: Error): Promise<State> {
  const facts: State = {
    ...EMPTY_STATE,
    at: Date.now(),
    stores: [awayStore('postgresql', error.message)],
    disk: { ...EMPTY_STATE.disk, ...(await readDisk(config)) },
    certificates: await readCertificates(config),
  };
  return { ...facts, problems: errorsFirst(problemsIn(facts)) };
}

const NO_SIZE: Pick<Disk, 'used_bytes' | 'growth_bytes_per_day'> = {
  used_bytes: null,
  growth_bytes_per_day: null,
};
const EMPTY_STATE: State = {
  at: 0,
  stores: [],
  processes: [],
  unled: [],
  projections: [],
  processors: [],
  queues: { due: 0, oldest_due_at: null, breakers_open: 0 },
  providers: [],
  disk: { ...NO_SIZE, free_bytes: null, size_bytes: null },
  certificates: [],
  domains: { active: 0, pending: 0, failed: 0 },
  ceilings: [],
  operator_webhook: {
    configured: false,
    pending: 0,
    failing_since: null,
    last_delivered_at: null,
    last_error: null,
  },
  unread: [],
  problems: [],
};

/** Consumers save their positions at once when asked for them, and otherwise up to a second late. */
const MAX_SAVE_WAIT_MS = 1_500;
const MAX_EVENTS_COUNTED = 10_000;

async function readConsumers(
  { pool, store, url }: Pick<OpenStores, 'pool' | 'store' | 'url'>,
  at: number,
): Promise<ConsumerState[]> {
  const head = await store.head();
  await Promise.all([
    waitUntilSaved(createProgress({ url, pool }), CONSUMERS.projections, head),
    waitUntilSaved(createProgress({ url, pool, table: 'work.processor' }), CONSUMERS.processors, head),
  ]);
  const positions = await listPositions(pool, CONSUMERS);
  const stopped = new Map(
    (await listStopped(pool)).map(({ kind, name, stopped_by }) => [`${kind} ${name}`, stopped_by]),
  );
  const lag = await readLag(store, positions, head);
  return positions.map(({ name, position }) => {
    const { events, since } = lag(position);
    return {
      name,
      lag_events: events,
      lag_ms: since === null ? 0 : Math.max(0, at - since),
      state: stopped.has(name) ? 'stopped' : events > 0 ? 'behind' : 'current',
      stopped_by: stopped.get(name) ?? null,
    };
  });
}

async function waitUntilSaved(
  progress: ReturnType<typeof createProgress>,
  names: readonly string[],
  head: Position | null,
): Promise<void> {
  await progress.reached(names, head, MAX_SAVE_WAIT_MS);
  await progress.close();
}

type Lag = { readonly events: number; readonly since: number | null };

/** Reads the log once, from the position of the consumer that is furthest behind. @returns the lag at a position */
async function readLag(
  store: EventStore,
  positions: readonly { readonly position: bigint | null }[],
  head: Position | null,
): Promise<(position: bigint | null) => Lag> {
  const least = positions.reduce(
    (low, { position }) => (low < (position ?? -1n) ? low : (position ?? -1n)),
    head ?? -1n,
  );
  const unread: { readonly position: bigint; readonly at: number }[] = [];
  if (head !== null && least < head) {
    const reading = new AbortController();
    const after = least < 0n ? null : (least as Position);
    for await (const batch of store.follow({ after, includeExpired: true, signal: reading.signal })) {
      unread.push(
        ...batch.events.map(({ position, metadata }) => ({ position, at: Date.parse(metadata.at) })),
      );
      if (batch.position >= head || unread.length >= MAX_EVENTS_COUNTED) reading.abort();
    }
  }
  return (position) => {
    const rest = unread.filter((one) => one.position > (position ?? -1n));
    return { events: rest.length, since: rest[0]?.at ?? null };
  };
}

/** The file system of the embedded database; another server's disk cannot be seen from here. */
export async function readDisk(
  config: Pick<Config, 'DATABASE_URL' | 'DATA_DIR'>,
): Promise<Pick<Disk, 'free_bytes' | 'size_bytes'>> {
  const folder = resolve(config.DATA_DIR);
  try {
    const { bavail, blocks, bsize } = await statfs(
      config.DATABASE_URL ? folder : (folderOfDatabase(folder) ?? dirname(folder)),
    );
    return { free_bytes: bavail * bsize, size_bytes: blocks * bsize };
  } catch {
    return { free_bytes: null, size_bytes: null };
  }
}

const TLS_MS = 2_000;

/** Asks the service's own name, where that is https, for its certificate. */
async function readCertificates(config: Config): Promise<Certificate[]> {
  const url = new URL(serviceUrl(config));
  if (url.protocol !== 'https:') return [];
  return [await readCertificate(url.hostname, Number(url.port || 443))];
}

export function readCertificate(host: string, port: number): Promise<Certificate> {
  const { promise, resolve: seen } = Promise.withResolvers<Certificate>();
  const socket = connect({ host, port, servername: host, rejectUnauthorized: false, timeout: TLS_MS });
  const failed = (error: string): void => seen({ host, expires_at: null, error });
  socket.once('secureConnect', () => {
    const { valid_to } = socket.getPeerCertificate();
    const error = socket.authorized ? null : String(socket.authorizationError);
    seen({ host, expires_at: valid_to ? isoTime(Date.parse(valid_to)) : null, error });
  });
  socket.once('timeout', () => failed(`no answer within ${TLS_MS / 1_000} s`));
  socket.once('error', (error) => failed(error.message));
  return promise.finally(() => socket.destroy());
}

async function readCeilings(config: Config, pool: pg.Pool): Promise<Ceiling[]> {
  const { WEBHOOK_QUEUE_PER_PARTNER: deliveries, WEBHOOK_PAYLOAD_BYTES_PER_PARTNER: bytes } = config;
  const [outstanding, fill, sessions] = await Promise.all([
    countOpenWork(pool, config.ENRICHMENT_OUTSTANDING),
    readQueueFill(pool, deliveries, bytes),
    readSessions(pool),
  ]);
  return [
    { name: 'ENRICHMENT_OUTSTANDING', used: outstanding, limit: config.ENRICHMENT_OUTSTANDING },
    { name: 'WEBHOOK_QUEUE_PER_PARTNER', used: Math.round(fill * deliveries), limit: deliveries },
    { name: 'max_connections', ...sessions },
  ];
}

async function readWebhook(config: Config, pool: pg.Pool): Promise<State['operator_webhook']> {
  if (config.OPERATOR_WEBHOOK_URL === undefined) return EMPTY_STATE.operator_webhook;
  return { configured: true, ...(await readOperatorWebhook(pool)) };
}
