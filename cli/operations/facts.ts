/** What `doorplate status` looks at: the state of the whole installation, read and never written. */
import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { connect } from 'node:tls';
import type pg from 'pg';
import { CONSUMERS, GROUP_NAMES } from '../../bin/groups.ts';
import { serviceUrl } from '../../bin/modules/domains.ts';
import { DAY, HOUR, isoTime, utcDay } from '../../domain/kernel/time.ts';
import { BREAKER_OPENS_AFTER } from '../../domain/webhooks/events.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import type { Config } from '../../platform/config/config.ts';
import { folderOfDatabase } from '../../platform/embedded/location.ts';
import { IS_ALIVE } from '../../platform/postgres/upgrade-path.ts';
import { createProgress } from '../../projections/progress.ts';
import { listPositions } from '../../queries/consumers.ts';
import { readProviderDay } from '../../queries/lookup/lookups.ts';
import { readQueueFill } from '../../queries/webhooks/webhooks.ts';
import { awayStore, type OpenStores, readStores, type StoreState } from './stores.ts';

export interface ProcessState {
  readonly id: string;
  readonly role: string;
  /** Version of its program. */
  readonly release: string | null;
  readonly started_at: string;
  /** The groups that it leads. */
  readonly leads: readonly string[];
  /** How far its clock is ahead of this machine's; behind: below 0. */
  readonly clock_ahead_ms: number;
}

export interface ConsumerState {
  readonly name: string;
  /** Events that it has not passed; counted up to 10,000. */
  readonly lag_events: number;
  /** Age of the first of them. */
  readonly lag_ms: number;
  readonly state: 'current' | 'behind' | 'stopped';
  /** The event that stopped it, and why; null: none. */
  readonly stopped_by: string | null;
}

export interface ProviderState {
  readonly name: string;
  readonly kind: string;
  readonly calls_today: number;
  readonly failed_today: number;
  readonly budget_left: number | null;
  /** Whether its last call failed. */
  readonly failing_since: string | null;
}

/** A certificate of TLS that the service's own name or a custom domain shows. */
export interface Certificate {
  readonly host: string;
  readonly expires_at: string | null;
  readonly error: string | null;
}

/** A ceiling over all partners, or of the partner that is nearest to it. */
export interface Ceiling {
  readonly name: string;
  readonly used: number;
  readonly limit: number;
}

/** The operator's webhook. */
export interface OperatorWebhook {
  readonly configured: boolean;
  readonly pending: number;
  /** When the oldest alert that is still undelivered after an attempt was made; null: none. */
  readonly failing_since: string | null;
  readonly last_delivered_at: string | null;
  /** Of the alert that waits longest; null: it has not failed. */
  readonly last_error: string | null;
}

/** The state of an installation. What could not be read is empty or null; `unread` says why. */
export interface Facts {
  readonly at: number;
  readonly stores: readonly StoreState[];
  readonly processes: readonly ProcessState[];
  /** Groups without a process that leads them. */
  readonly unled: readonly string[];
  readonly projections: readonly ConsumerState[];
  readonly processors: readonly ConsumerState[];
  readonly queues: {
    readonly due: number;
    readonly oldest_due_at: string | null;
    readonly breakers_open: number;
  };
  readonly providers: readonly ProviderState[];
  readonly disk: {
    readonly used_bytes: number | null;
    readonly growth_bytes_per_day: number | null;
    /** Of the file system that holds the embedded database. */
    readonly free_bytes: number | null;
    readonly size_bytes: number | null;
  };
  readonly certificates: readonly Certificate[];
  readonly domains: { readonly active: number; readonly pending: number; readonly failed: number };
  readonly ceilings: readonly Ceiling[];
  readonly operator_webhook: OperatorWebhook;
  readonly unread: readonly string[];
}

/** Reads everything; a part that cannot be read does not delay or hide the others. */
export async function readFacts(config: Config, stores: OpenStores): Promise<Facts> {
  const at = Date.now();
  const { pool, store, url } = stores;
  const states = await readStores(config, stores);
  const isUp = (kind: StoreState['kind']): boolean =>
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
  const [processes, consumers, queues, providers, used, disk, certificates, domains, ceilings, alerts] =
    await Promise.all([
      read('processes', up, () => readProcesses(pool), []),
      read('consumers', up && isUp('eventstoredb'), () => readConsumers({ pool, store, url }, at), []),
      read('queues', up, () => readQueues(pool, at), { due: 0, oldest_due_at: null, breakers_open: 0 }),
      read('providers', up, () => readProviders(config, pool, at), []),
      read('database size', up, () => readUsed(pool, at), { used_bytes: null, growth_bytes_per_day: null }),
      readDisk(config),
      readCertificates(config),
      read('domains', up, () => readDomains(pool), { active: 0, pending: 0, failed: 0 }),
      read('ceilings', up, () => readCeilings(config, pool), []),
      read('operator webhook', up, () => readOperatorWebhook(config, pool), NO_WEBHOOK),
    ]);
  const ofKind = (kind: string): ConsumerState[] =>
    consumers.flatMap((one) =>
      one.name.startsWith(kind) ? [{ ...one, name: one.name.slice(kind.length + 1) }] : [],
    );
  return {
    at,
    stores: states,
    processes,
    unled: GROUP_NAMES.filter((name) => !processes.some(({ leads }) => leads.includes(name))),
    projections: ofKind('projection'),
    processors: ofKind('processor'),
    queues,
    providers,
    disk: { ...used, ...disk },
    certificates,
    domains,
    ceilings,
    operator_webhook: alerts,
    unread,
  };
}

/** The facts where the embedded database could not be joined, as on a full disk. */
export async function factsWithoutStores(config: Config, error: Error): Promise<Facts> {
  return {
    ...NOTHING,
    at: Date.now(),
    stores: [awayStore('postgresql', error.message)],
    disk: { ...NOTHING.disk, ...(await readDisk(config)) },
    certificates: await readCertificates(config),
  };
}

const NO_WEBHOOK: OperatorWebhook = {
  configured: false,
  pending: 0,
  failing_since: null,
  last_delivered_at: null,
  last_error: null,
};
const NOTHING: Facts = {
  at: 0,
  stores: [],
  processes: [],
  unled: [],
  projections: [],
  processors: [],
  queues: { due: 0, oldest_due_at: null, breakers_open: 0 },
  providers: [],
  disk: { used_bytes: null, growth_bytes_per_day: null, free_bytes: null, size_bytes: null },
  certificates: [],
  domains: { active: 0, pending: 0, failed: 0 },
  ceilings: [],
  operator_webhook: NO_WEBHOOK,
  unread: [],
};

export async function readProcesses(pool: pg.Pool): Promise<ProcessState[]> {
  const { rows } = await pool.query<Omit<ProcessState, 'started_at' | 'clock_ahead_ms'> & { seen_at: Date }>(
    `select p.process_id as id, p.role, p.release, p.seen_at,
            coalesce((select json_agg(l.name order by l.name) from work.lease l where l.process_id = p.process_id), '[]')
              as leads
     from work.process p where ${IS_ALIVE} order by p.role, p.process_id`,
  );
  const now = Date.now();
  return rows.map(({ seen_at, ...row }) => ({
    ...row,
    // Ids of processes are UUIDs of version 7, which begin with their time (RFC 9562 section 5.7).
    started_at: isoTime(Number.parseInt(row.id.replaceAll('-', '').slice(0, 12), 16)),
    clock_ahead_ms: seen_at.getTime() - now,
  }));
}

/** Consumers save their positions up to a second late, unless somebody asks for them. */
const SAVED_MS = 1_500;
const MAX_EVENTS_COUNTED = 10_000;

async function readConsumers(
  { pool, store, url }: Pick<OpenStores, 'pool' | 'store' | 'url'>,
  at: number,
): Promise<ConsumerState[]> {
  const head = await store.head();
  await Promise.all([
    reached(createProgress({ url, pool }), CONSUMERS.projections, head),
    reached(createProgress({ url, pool, table: 'work.processor' }), CONSUMERS.processors, head),
  ]);
  const positions = await listPositions(pool, CONSUMERS);
  const { rows } = await pool.query<{ name: string; stopped_by: string }>(
    `select 'projection ' || name as name, stopped_by from read.projection where stopped_by is not null
     union all select 'processor ' || name, stopped_by from work.processor where stopped_by is not null`,
  );
  const stopped = new Map(rows.map(({ name, stopped_by }) => [name, stopped_by]));
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

async function reached(
  progress: ReturnType<typeof createProgress>,
  names: readonly string[],
  head: Position | null,
): Promise<void> {
  await progress.reached(names, head, SAVED_MS);
  await progress.close();
}

type Lag = { readonly events: number; readonly since: number | null };

/** Reads the log once, from the consumer that is furthest behind. */
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

async function readQueues(pool: pg.Pool, at: number): Promise<Facts['queues']> {
  const { rows } = await pool.query<{ due: number; oldest: Date | null; breakers_open: number }>(
    `select coalesce(sum(n.due) filter (where not h.held), 0)::int as due,
            min(n.oldest) filter (where not h.held) as oldest, count(*) filter (where h.held)::int as breakers_open
     from (select webhook_id, failures_in_row >= $1 as held from read.webhook_health
           where pending > 0 and coalesce(paused_at, partner_suspended_at, deleted_at) is null) h
     cross join lateral (
       select count(*) as due, min(d.next_attempt_at) as oldest
       from (select next_attempt_at from read.webhook_delivery
             where webhook_id = h.webhook_id and state = 'pending' and next_attempt_at <= $2
             order by next_attempt_at limit ${MAX_EVENTS_COUNTED}) d) n`,
    [BREAKER_OPENS_AFTER, new Date(at)],
  );
  const { due = 0, oldest = null, breakers_open = 0 } = rows[0] ?? {};
  return { due, oldest_due_at: oldest === null ? null : isoTime(oldest.getTime()), breakers_open };
}

async function readProviders(config: Config, pool: pg.Pool, at: number): Promise<ProviderState[]> {
  const days = await readProviderDay(pool, utcDay(at));
  const { rows } = await pool.query<{ provider: string; failed: Date | null; answered: Date | null }>(
    `select provider, max(last_failed_at) as failed, max(last_answered_at) as answered
     from work.provider_day where day >= $1::date group by provider`,
    [utcDay(at - DAY)],
  );
  return config.providers.map((settings) => {
    const today = days.find(({ provider }) => provider === settings.name);
    const last = rows.find(({ provider }) => provider === settings.name);
    const failed = last?.failed ?? null;
    const isFailing = failed !== null && failed > (last?.answered ?? new Date(0));
    const { requestsPerDay = null } = 'timeoutMs' in settings ? settings : {};
    return {
      name: settings.name,
      kind: settings.kind,
      calls_today: today?.calls ?? 0,
      failed_today: today?.failed ?? 0,
      budget_left: requestsPerDay === null ? null : Math.max(0, requestsPerDay - (today?.budget_used ?? 0)),
      failing_since: isFailing ? isoTime(failed.getTime()) : null,
    };
  });
}

async function readUsed(
  pool: pg.Pool,
  at: number,
): Promise<Pick<Facts['disk'], 'used_bytes' | 'growth_bytes_per_day'>> {
  const { rows } = await pool.query<{ used: string; first: string | null; taken_at: Date | null }>(
    `select pg_database_size(current_database()) as used, s.used_bytes as first, s.taken_at
     from (values (1)) one left join lateral (
       select * from work.disk_sample order by taken_at limit 1) s on true`,
  );
  const { used = null, first = null, taken_at = null } = rows[0] ?? {};
  const age = at - (taken_at?.getTime() ?? at);
  return {
    used_bytes: used === null ? null : Number(used),
    // Of less than an hour nothing can be said of a day.
    growth_bytes_per_day:
      age < HOUR || used === null || first === null
        ? null
        : Math.round(((Number(used) - Number(first)) * DAY) / age),
  };
}

/** The file system of the embedded database; another server's disk cannot be seen from here. */
export async function readDisk(
  config: Pick<Config, 'DATABASE_URL' | 'DATA_DIR'>,
): Promise<Pick<Facts['disk'], 'free_bytes' | 'size_bytes'>> {
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

async function readDomains(pool: pg.Pool): Promise<Facts['domains']> {
  const { rows } = await pool.query<Facts['domains']>(
    `select count(*) filter (where status = 'active')::int as active,
            count(*) filter (where status = 'pending')::int as pending,
            count(*) filter (where status = 'failed')::int as failed
     from read.domain`,
  );
  return rows[0] ?? { active: 0, pending: 0, failed: 0 };
}

async function readCeilings(config: Config, pool: pg.Pool): Promise<Ceiling[]> {
  const { rows } = await pool.query<{ outstanding: number; sessions: number; max_sessions: number }>(
    `select (select count(*) from (select from read.enrichment_work limit $1) w)::int as outstanding,
            (select count(*) from pg_stat_activity where backend_type = 'client backend')::int as sessions,
            current_setting('max_connections')::int as max_sessions`,
    [config.ENRICHMENT_OUTSTANDING],
  );
  const { outstanding = 0, sessions = 0, max_sessions = 0 } = rows[0] ?? {};
  const { WEBHOOK_QUEUE_PER_PARTNER: deliveries, WEBHOOK_PAYLOAD_BYTES_PER_PARTNER: bytes } = config;
  const fill = await readQueueFill(pool, deliveries, bytes);
  return [
    { name: 'ENRICHMENT_OUTSTANDING', used: outstanding, limit: config.ENRICHMENT_OUTSTANDING },
    { name: 'WEBHOOK_QUEUE_PER_PARTNER', used: Math.round(fill * deliveries), limit: deliveries },
    { name: 'max_connections', used: sessions, limit: max_sessions },
  ];
}

async function readOperatorWebhook(config: Config, pool: pg.Pool): Promise<OperatorWebhook> {
  if (config.OPERATOR_WEBHOOK_URL === undefined) return NO_WEBHOOK;
  const { rows } = await pool.query<{
    pending: number;
    failing: Date | null;
    delivered: Date | null;
    error: string | null;
  }>(
    `select count(*) filter (where due)::int as pending, min(created_at) filter (where due and attempts > 0) as failing,
            max(delivered_at) as delivered, (array_agg(last_error order by created_at) filter (where due))[1] as error
     from (select *, delivered_at is null and gave_up_at is null as due from work.operator_alert) a`,
  );
  const { pending = 0, failing = null, delivered = null, error = null } = rows[0] ?? {};
  return {
    configured: true,
    pending,
    failing_since: failing && isoTime(failing.getTime()),
    last_delivered_at: delivered && isoTime(delivered.getTime()),
    last_error: error,
  };
}
