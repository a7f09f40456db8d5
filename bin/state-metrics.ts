import type { Metrics } from '../platform/metrics.ts';
import { createStateMetrics, type StateOfThings } from '../platform/state-metrics.ts';
import type { Foundation } from './foundation.ts';
import { CONSUMERS } from './retention.ts';

const LEADS = ['projections', 'upkeep', ...CONSUMERS.processors.map((name) => `processor ${name}`)];

/** What the look is at. */
type StoresLookedAt = Pick<Foundation, 'pool' | 'store' | 'config'>;

/** Prometheus gives up after ten seconds, and with the stores' state everything else would be lost to it. */
const LOOK_MS = 2_000;

/** Has `/metrics` tell how things stand, whichever process is asked. */
export const watchState = (
  foundation: StoresLookedAt & Pick<Foundation, 'clock'>,
  { registry }: Pick<Metrics, 'registry'>,
): void => createStateMetrics(registry, () => look(foundation), foundation.clock.now);

const look = async ({ pool, store, config }: StoresLookedAt): Promise<StateOfThings> => {
  const ceilings = [config.WEBHOOK_QUEUE_PER_PARTNER, config.WEBHOOK_PAYLOAD_BYTES_PER_PARTNER];
  const consumers = [CONSUMERS.projections, CONSUMERS.processors];
  const [head, places, leads, fill] = await Promise.all([
    inTime(store.head()),
    inTime(pool.query<{ name: string; position: string | null }>(PLACES, consumers)),
    inTime(pool.query<{ name: string; held: boolean }>(LED, [LEADS])),
    inTime(pool.query<{ fill: number }>(FILL, ceilings)),
  ]);
  return {
    postgresql: places !== undefined && leads !== undefined && fill !== undefined,
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

/** undefined: no answer, or none soon. */
const inTime = async <T>(asked: Promise<T>): Promise<T | undefined> => {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), LOOK_MS);
  return Promise.race([asked, late])
    .catch(() => undefined)
    .finally(() => clearTimeout(timer));
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
