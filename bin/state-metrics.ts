import type { Metrics } from '../platform/metrics.ts';
import { createStateMetrics, type StateOfThings } from '../platform/state-metrics.ts';
import type { Foundation } from './foundation.ts';
import { CONSUMERS } from './retention.ts';

const LEADS = ['projections', 'upkeep', ...CONSUMERS.processors.map((name) => `processor ${name}`)];

/** Has `/metrics` tell how things stand, whichever process is asked. */
export const watchState = (foundation: Foundation, metrics: Metrics): void =>
  createStateMetrics(metrics.registry, () => look(foundation), foundation.clock.now);

const look = async ({ pool, store, config }: Foundation): Promise<StateOfThings> => {
  // The head first: who is behind it by then is behind.
  const head = await store.head().catch(() => undefined);
  const places = await pool
    .query<{ name: string; position: string | null }>(PLACES, [CONSUMERS.projections, CONSUMERS.processors])
    .catch(() => null);
  const leads = await pool.query<{ name: string; held: boolean }>(LED, [LEADS]).catch(() => null);
  const fill = await pool
    .query<{ fill: number }>(FILL, [
      config.WEBHOOK_QUEUE_PER_PARTNER,
      config.WEBHOOK_PAYLOAD_BYTES_PER_PARTNER,
    ])
    .catch(() => null);
  return {
    postgresql: places !== null && leads !== null && fill !== null,
    eventStore: head !== undefined,
    head: head ?? null,
    places: (places?.rows ?? []).map(({ name, position }) => ({
      name,
      position: position === null ? null : BigInt(position),
    })),
    leads: leads?.rows ?? [],
    queueFill: fill?.rows[0]?.fill ?? 0,
  };
};

const PLACES = `
  select 'projection ' || n.name as name, c.position
  from unnest($1::text[]) as n (name) left join read.projection c on c.name = n.name
  union all
  select 'processor ' || n.name, c.position
  from unnest($2::text[]) as n (name) left join work.processor c on c.name = n.name`;

/** The locks of platform/leader.ts, as `pg_locks` shows those with two keys. */
const LED = `
  select n.name, exists (
    select from pg_locks l
    where l.locktype = 'advisory' and l.granted and l.classid = 72390 and l.objsubid = 2
      and l.objid = (hashtext(n.name)::bigint & 4294967295)::oid
      and l.database = (select oid from pg_database where datname = current_database())) as held
  from unnest($1::text[]) as n (name)`;

const FILL = `
  select greatest(
    (select max(n) / $1::float8 from (
      select sum(pending) as n from read.webhook_health where deleted_at is null group by partner_id) p),
    (select max(n) / $2::float8 from (select sum(bytes) as n from read.webhook_retained group by partner_id) b),
    0)::float8 as fill`;
