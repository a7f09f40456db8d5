import { CONSUMERS } from '../../bin/groups.ts';
import type { Runtime } from '../../bin/runtime.ts';
import { measureDeliveries, subscribe } from '../rows/deliveries.ts';
import { startWebhookSink } from './bare-deliveries.ts';
import type { Bench } from './bench.ts';
import { startCluster } from './cluster.ts';
import { limitCpu } from './cpu-limit.ts';
import { describeMachine } from './machine.ts';
import { median } from './statistics.ts';
import { deliveringEnv } from './webhooks.ts';

/** Of a core, for each workers process: little enough that PostgreSQL and the rest are never the limit. */
const SHARE = 0.2;
const PARTNERS = 4;
const NO_LIMITS = { WEBHOOK_STARTS_PER_SECOND: '100000' };
/** The groups that visits and their deliveries feed. */
const BUSY = ['visits', 'webhooks'];
const SHARED_MS = 60_000;
const APPLIED_MS = 120_000;
const POLL_MS = 100;

type Part = Pick<Bench, 'effort' | 'defer' | 'freshAddresses' | 'say'>;

/**
 * Measures visits that five endpoints are sent, to the end of their deliveries and read models, with one and with two workers
 * processes, each limited to a part of a core. Returns a sentence for docs/scaling.md.
 */
export const measureSharing = async (bench: Part): Promise<string> => {
  const [one, two] = [await measure(bench, 1), await measure(bench, 2)];
  const figure = (value: number): string => Math.round(value).toLocaleString('en');
  return (
    `On ${two.machine}: one workers process with ${SHARE * 100} % of a core applied ${figure(one.perSecond)} events a second, ` +
    `and two of them with ${SHARE * 100} % each ${figure(two.perSecond)}, ${(two.perSecond / one.perSecond).toFixed(2)} times as ` +
    `many (medians of ${bench.effort.rounds} rounds). The two led ${two.leads}.`
  );
};

const measure = async (bench: Part, workers: 1 | 2) => {
  const sink = await startWebhookSink();
  bench.defer(sink.end);
  const cluster = await startCluster(workers, PARTNERS, {
    ...(await deliveringEnv(bench, sink)),
    ...NO_LIMITS,
  });
  const limits: (() => void)[] = [];
  let ending: Promise<void> | null = null;
  const end = (): Promise<void> => {
    // A control group goes only after its process.
    ending ??= cluster.end().then(() => {
      for (const lift of limits) lift();
    });
    return ending;
  };
  bench.defer(end);
  const sites = await subscribe(cluster, sink);
  const { leads, seen } = await cluster.beside(async (runtime) => {
    const leads = await sharedOut(runtime, workers);
    const round = async (): Promise<number> => {
      await cluster.settled();
      const [before, began] = [await eventsIn(runtime), performance.now()];
      await measureDeliveries(bench, runtime, cluster, sites, sink);
      await runtime.progress.reached(CONSUMERS.projections, await runtime.store.head(), APPLIED_MS);
      const took = (performance.now() - began) / 1_000;
      return ((await eventsIn(runtime)) - before) / took;
    };
    // Compiled and connected, before the limit.
    await round();
    limits.push(...cluster.workers.map((pid) => limitCpu(pid, SHARE)));
    const seen: number[] = [];
    while (seen.length < bench.effort.rounds) {
      seen.push(await round());
      bench.say(`${workers} workers: ${Math.round(seen.at(-1) ?? 0)} events/s`);
    }
    return { leads, seen };
  });
  const { date, cores, cpu, postgresql } = await describeMachine(cluster, 'postgresql');
  await end();
  await sink.end();
  return {
    perSecond: median(seen),
    leads,
    machine: `${date.slice(0, 10)}, ${cores} cores (${cpu}), PostgreSQL ${postgresql}`,
  };
};

const eventsIn = async ({ pool }: Runtime): Promise<number> => {
  const { rows } = await pool.query('select count(*) from eventlog.event');
  return Number(rows[0].count);
};

/** Waits until each process leads one of the busy groups. @returns which process leads what */
const sharedOut = async ({ pool }: Runtime, workers: number): Promise<string> => {
  for (const deadline = performance.now() + SHARED_MS; ; await pause(POLL_MS)) {
    const { rows } = await pool.query<{ names: readonly string[] }>(
      'select array_agg(name order by name) as names from work.lease group by process_id order by 1',
    );
    const isShared =
      rows.length === workers && rows.every(({ names }) => names.some((one) => BUSY.includes(one)));
    const leads = rows.map(({ names }) => names.join(', ')).join('; and ');
    if (isShared) return leads;
    if (performance.now() > deadline) throw new Error(`the groups are not shared: ${leads}`);
  }
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
