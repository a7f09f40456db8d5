import pTimeout from 'p-timeout';
import { Counter } from 'prom-client';
import type { Leases } from '../platform/leases.ts';
import type { Metrics } from '../platform/metrics.ts';
import { createStateMetrics, type StateOfThings } from '../platform/state-metrics.ts';
import { GROUP_NAMES } from './groups.ts';
import { CONSUMERS } from './retention.ts';
import type { Runtime } from './runtime.ts';

type MeasuredStores = Pick<Runtime, 'pool' | 'store' | 'config'>;
type Measured = MeasuredStores & Pick<Runtime, 'clock' | 'logStalls'>;
type MeasuredLeases = Pick<Leases, 'processId' | 'states'>;

/** Prometheus gives up after ten seconds and would then lose all metrics. */
const MEASURE_MS = 2_000;

/** Adds the metrics of the whole installation, the same in every process. */
export const watchState = (
  runtime: Measured,
  leases: MeasuredLeases,
  { registry }: Pick<Metrics, 'registry'>,
): void => {
  createStateMetrics(
    registry,
    () => measure(runtime, leases),
    () => performance.now(),
  );
  new Counter({
    name: 'doorplate_log_stalls_total',
    help: 'Reads of the event log that failed and were repeated.',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(runtime.logStalls());
    },
  });
};

const measure = async (
  { pool, store, config }: MeasuredStores,
  leases: MeasuredLeases,
): Promise<StateOfThings> => {
  const ceilings = [config.WEBHOOK_QUEUE_PER_PARTNER, config.WEBHOOK_PAYLOAD_BYTES_PER_PARTNER];
  const consumers = [CONSUMERS.projections, CONSUMERS.processors];
  const [head, positions, fill] = await Promise.all([
    inTime(store.head()),
    inTime(pool.query<{ name: string; position: string | null }>(POSITIONS, consumers)),
    inTime(pool.query<{ fill: number }>(FILL, ceilings)),
  ]);
  return {
    postgresql: positions !== undefined && fill !== undefined,
    eventStore: head !== undefined,
    head: head ?? null,
    positions: (positions?.rows ?? []).map(({ name, position }) => ({
      name,
      position: position === null ? null : BigInt(position),
    })),
    leads: leadsOf(leases),
    queueFill: fill?.rows[0]?.fill ?? 0,
  };
};

/** Returns an empty list while heartbeats fail. */
const leadsOf = ({ processId, states }: MeasuredLeases): StateOfThings['leads'] => {
  const known = states();
  if (known === null) return [];
  return GROUP_NAMES.map((name) => {
    const holder = known.find((lease) => lease.name === name)?.processId ?? null;
    return { name, held: holder !== null, here: holder === processId };
  });
};

/** Returns undefined after a failure or a time limit. */
const inTime = <T>(asked: Promise<T>): Promise<T | undefined> =>
  pTimeout(asked, { milliseconds: MEASURE_MS }).catch(() => undefined);

const POSITIONS = `
  select 'projection ' || n.name as name, c.position
  from unnest($1::text[]) as n (name) left join read.projection c on c.name = n.name
  union all
  select 'processor ' || n.name, c.position
  from unnest($2::text[]) as n (name) left join work.processor c on c.name = n.name`;

const FILL = `
  select greatest(
    (select max(n) / $1::float8 from (
      select sum(pending) as n from read.webhook_health where deleted_at is null group by partner_id) p),
    (select max(n) / $2::float8 from (select sum(bytes) as n from read.webhook_retained group by partner_id) b),
    0)::float8 as fill`;
