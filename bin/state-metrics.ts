import pTimeout from 'p-timeout';
import { Counter } from 'prom-client';
import type { Leases } from '../platform/leases.ts';
import type { Metrics } from '../platform/metrics.ts';
import { createStateMetrics, type StateOfThings } from '../platform/state-metrics.ts';
import { listPositions } from '../queries/consumers.ts';
import { readQueueFill } from '../queries/webhooks/webhooks.ts';
import { CONSUMERS } from './consumers.ts';
import { GROUP_NAMES } from './groups.ts';
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
  const [head, positions, fill] = await Promise.all([
    inTime(store.head()),
    inTime(listPositions(pool, CONSUMERS)),
    inTime(readQueueFill(pool, config.WEBHOOK_QUEUE_PER_PARTNER, config.WEBHOOK_PAYLOAD_BYTES_PER_PARTNER)),
  ]);
  return {
    postgresql: positions !== undefined && fill !== undefined,
    eventStore: head !== undefined,
    head: head ?? null,
    positions: positions ?? [],
    leads: leadsOf(leases),
    queueFill: fill ?? 0,
  };
};

/** Returns an empty list while heartbeats fail. */
const leadsOf = (leases: MeasuredLeases): StateOfThings['leads'] => {
  const known = leases.states();
  if (known === null) return [];
  return GROUP_NAMES.map((name) => {
    const holder = known.find((lease) => lease.name === name)?.processId ?? null;
    return { name, held: holder !== null, here: holder === leases.processId };
  });
};

/** Returns undefined after a failure or a time limit. */
const inTime = <T>(asked: Promise<T>): Promise<T | undefined> =>
  pTimeout(asked, { milliseconds: MEASURE_MS }).catch(() => undefined);
