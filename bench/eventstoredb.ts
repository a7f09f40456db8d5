/**
 * `EVENTSTORE_URL=esdb://… node bench/eventstoredb.ts [--quick] [--rows]`: the product on EventStoreDB to the same on the embedded
 * PostgreSQL, in turns; then the CPU of the client (`event-store-client.ts`) and the event store's port to its peers, which `--rows`
 * leaves out. Prints tables in Markdown. Give an empty node on this machine's disk with
 * the threads that docs/configuration.md names, and nothing else to do to the machine.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { countEvents } from '../cli/capacity/workload.ts';
import { NO_CEILINGS } from '../cli/installation/installation.ts';
import { exists } from '../platform/embedded/processes.ts';
import { startService } from '../test/support/service.ts';
import { until } from '../test/support/until.ts';
import { savedAnswer, savedPlan } from './rows/saved-lookups.ts';
import { slowVendor } from './rows/submissions.ts';
import { startWebhookSink } from './support/bare-deliveries.ts';
import { type Bench, FULL, QUICK } from './support/bench.ts';
import { startCluster } from './support/cluster.ts';
import { load } from './support/load.ts';
import type { LoadPlan } from './support/load-plan.ts';
import { type Product, startProduct } from './support/product.ts';
import { median, percentile } from './support/statistics.ts';
import { createRevealable, createTracker, VISITORS } from './support/tracking.ts';
import { captureToReceiver, createEndpoint, deliveringEnv } from './support/webhooks.ts';

const PARTNERS = 4;
const CONNECTIONS = [64, 200] as const;
const CALLERS = 32;
const RATE = 100;
/** Captures a second that either store takes. */
const BACKLOG_RATE = 1_000;
const REVEAL_CONNECTIONS = 20;
/** More than any run needs. */
const ADDRESSES = 1_000_000;
/** The two stores, in this order everywhere. */
const STORES = ['EventStoreDB', 'PostgreSQL'] as const;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rows: { type: 'boolean', default: false },
  },
});
const url = process.env.EVENTSTORE_URL ?? '';
const root = fileURLToPath(new URL('..', import.meta.url));
const undoing: (() => Promise<void>)[] = [];
let used = 0;
const bench: Bench = {
  effort: values.quick ? QUICK : { ...FULL, rounds: 3 },
  eventStoreUrl: url,
  product: () => Promise.reject(new Error('each row has products of its own')),
  endProduct: async () => undefined,
  maxima: new Map(),
  freshAddresses: (count) => {
    used += count;
    return used - count;
  },
  defer: (undo) => void undoing.push(undo),
  say: (text) => void process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`),
};
const { warmUpSeconds, seconds, rounds } = bench.effort;

/** By figure: a value for each store. */
type Figures = Readonly<Record<string, number>>;
const table: string[] = [];

/** Measures both stores in turns and adds a line for each figure. */
const compare = async (sides: readonly (() => Promise<Figures>)[], times = rounds): Promise<void> => {
  const measured: Figures[][] = sides.map(() => []);
  for (let round = 0; round < times; round += 1)
    for (const [nth, side] of sides.entries()) measured[nth]?.push(await side());
  for (const name of Object.keys(measured[0]?.[0] ?? {})) {
    const [ours = 0, theirs = 0] = measured.map((some) => median(some.map((one) => one[name] ?? 0)));
    const line = `| ${name} | ${ours.toFixed(1)} | ${theirs.toFixed(1)} | ${(ours / theirs).toFixed(2)} |`;
    bench.say(line);
    table.push(line);
  }
};

const onBoth = async <T>(start: (more: Readonly<Record<string, string>>) => Promise<T>): Promise<T[]> => [
  await start({ EVENTSTORE_URL: url }),
  await start({}),
];

const measureLoads = async (): Promise<void> => {
  const sink = await startWebhookSink();
  bench.defer(sink.end);
  const delivering = await deliveringEnv(bench, sink);
  const products = await onBoth((more) => startProduct(PARTNERS, { ...delivering, ...more }));
  const sides = await Promise.all(
    products.map(async (product) => ({ product, tracker: await createTracker(product) })),
  );
  for (const { product } of sides) {
    await product.followed();
    await savedAnswer(product);
  }
  const plan = <Requests extends LoadPlan['requests']>(
    product: Product,
    requests: Requests,
    connections: number,
    expect: number,
  ) => ({ port: product.port, requests, connections, warmUpSeconds, seconds, expect });
  for (const connections of CONNECTIONS) {
    await compare(
      sides.map(({ product, tracker }) => async () => {
        const requests = { of: 'captures', tracker, first: bench.freshAddresses(ADDRESSES) } as const;
        const loaded = await load(plan(product, requests, connections, 204), product.meters);
        await product.followed();
        return {
          [`captures/s, ${connections} connections`]: loaded.perSecond,
          [`CPU of the process of a capture, µs, ${connections} connections`]: loaded.cpuMicros.server ?? 0,
        };
      }),
    );
    await compare(
      sides.map(({ product }) => async () => {
        const loaded = await load(
          { ...savedPlan(product, { warmUpSeconds, seconds }), connections },
          product.meters,
        );
        return {
          [`saved lookups/s, ${connections} connections`]: loaded.perSecond,
          [`CPU of the process of a saved lookup, µs, ${connections} connections`]:
            loaded.cpuMicros.server ?? 0,
        };
      }),
    );
  }
  const revealing = [];
  for (const { product } of sides)
    revealing.push({
      product,
      begin: await createRevealable(product, bench.freshAddresses(VISITORS)),
    });
  await compare(
    revealing.map(({ product, begin }) => async () => {
      const sessions = await begin(RATE * (warmUpSeconds + seconds));
      const requests = { of: 'reveals', key: product.keys[0] ?? '', sessions } as const;
      const loaded = await load(
        { ...plan(product, requests, REVEAL_CONNECTIONS, 200), rate: RATE },
        product.meters,
      );
      await product.followed();
      return {
        [`CPU of the process of a reveal at ${RATE}/s, µs`]: loaded.cpuMicros.server ?? 0,
        [`reveal at ${RATE}/s, p50 ms`]: loaded.p50,
      };
    }),
  );
  for (const [nth, { product, tracker }] of sides.entries())
    await createEndpoint(product, product.keys[0] ?? '', sink.urls[nth] ?? '', tracker);
  await compare(
    sides.map(({ product, tracker }) => async () => {
      const waits = await captureToReceiver(bench, {
        product,
        sink,
        tracker,
        rate: RATE,
        seconds: 2 * seconds,
      });
      return {
        [`capture to receiver at ${RATE}/s, p50 ms`]: percentile(waits, 0.5),
        [`capture to receiver at ${RATE}/s, p90 ms`]: percentile(waits, 0.9),
      };
    }),
  );
  for (const { product } of sides) await product.end();
};

const measureSubmissions = async (): Promise<void> => {
  const vendor = await slowVendor(bench);
  const products = await onBoth((more) => startProduct(PARTNERS, { ...vendor, ...more }));
  for (const product of products) await product.followed();
  await compare(
    products.map((product) => async () => {
      const requests = {
        of: 'lookups',
        method: 'POST',
        keys: product.keys,
        address: { first: bench.freshAddresses(ADDRESSES) },
      } as const;
      const loaded = await load(
        { port: product.port, requests, connections: CALLERS, warmUpSeconds, seconds, expect: 202 },
        product.meters,
      );
      await product.followed();
      return {
        [`new submissions/s, ${CALLERS} connections`]: loaded.perSecond,
        'CPU of the process of a new submission, µs': loaded.cpuMicros.server ?? 0,
      };
    }),
  );
  for (const product of products) await product.end();
};

/** A workers process begins while sessions wait for it, as many on both stores. Once, on an empty log. */
const measureCatchUp = (): Promise<void> =>
  compare(
    [{ EVENTSTORE_URL: url }, {}].map((more) => async () => {
      const cluster = await startCluster(1, 1, more);
      bench.defer(cluster.end);
      const tracker = await createTracker(cluster);
      await cluster.followed();
      const [former = 0] = cluster.workers;
      process.kill(former, 'SIGTERM');
      await until('the former workers have ended', () => !exists(former));
      const before = await cluster.beside(({ store }) => store.head());
      await load({
        port: cluster.port,
        requests: { of: 'captures', tracker, first: bench.freshAddresses(ADDRESSES) },
        connections: CONNECTIONS[0],
        rate: BACKLOG_RATE,
        warmUpSeconds: 0,
        seconds: 2 * seconds,
        expect: 204,
      });
      const events = await cluster.beside(
        async ({ store }) => (await countEvents(store, before, await store.head())).events,
      );
      const begun = performance.now();
      const env = { LOG_LEVEL: 'warn', ...NO_CEILINGS, ...more };
      const workers = await startService({ role: 'workers', databaseUrl: cluster.url, env });
      try {
        await cluster.followed();
        return {
          'a workers process catches up, events/s, its start included':
            (events * 1_000) / (performance.now() - begun),
        };
      } finally {
        await workers.terminate();
        await workers.remove();
        await cluster.end();
      }
    }),
    1,
  );

const child = (args: readonly string[]): string => {
  bench.say(args.join(' '));
  const { stdout, status } = spawnSync(process.execPath, args, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}`);
  return stdout.trim();
};

const HEAD = `| | ${STORES.join(' | ')} | ratio |\n| --- | --- | --- | --- |`;
const effort = values.quick ? ['--quick'] : [];
try {
  if (url === '') throw new Error('EVENTSTORE_URL is not set');
  await measureCatchUp();
  await measureLoads();
  await measureSubmissions();
  process.stdout.write(`${HEAD}\n${table.join('\n')}\n`);
  if (!values.rows) {
    process.stdout.write(`\n${child(['bench/event-store-client.ts', values.quick ? '2' : '5'])}\n`);
    process.stdout.write(`\n${child(['bench/run.ts', '--peers', 'event-store', ...effort])}\n`);
  }
} finally {
  for (const undo of undoing.reverse()) await undo().catch((error: unknown) => bench.say(`${error}`));
}
process.exit(0);
