import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { cpuOf, cpuOfFamily } from '../../cli/installation/process-stats.ts';
import { makeTestFolder } from '../../test/support/temporary-folder.ts';
import { measureDeliveries, OF_A_PARTNER, SESSIONS_A_SECOND, subscribe } from '../rows/deliveries.ts';
import { startWebhookSink, type WebhookSink } from '../support/bare-deliveries.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import { startChild } from '../support/child.ts';
import type { Product } from '../support/product.ts';
import { compared, percentile } from '../support/statistics.ts';
import { createTracker } from '../support/tracking.ts';
import { captureToReceiver, createEndpoint, startDelivering, waitsOf } from '../support/webhooks.ts';
import { installPeers, versionOf } from './install.ts';
import type { QueuedDeliverer } from './queue-deliveries.ts';

/** Each with the least ratio of rates. */
const LIBRARIES = [
  { library: 'pg-boss', atLeast: 3 },
  { library: 'graphile-worker', atLeast: 2 },
] as const;
/** The last one has the endpoint that hangs. */
const PARTNERS = 5;
const RATE = 50;
const START_MS = 60_000;
const DELIVERED_MS = 120_000;

interface Measured {
  readonly perSecond: number;
  readonly cpuMicros: number;
}

interface Side {
  measure(): Promise<Measured>;
  /** Milliseconds from the acknowledgement of each event until the healthy endpoint has it. */
  besideHanging(): Promise<Float64Array>;
}

/**
 * Sessions to acknowledged deliveries, each to five of twenty HTTPS endpoints, against the jobs that people write on a queue in
 * PostgreSQL; then the time to an endpoint beside one that never answers.
 */
export const deliveryPeers: Row = {
  name: 'deliveries',
  run: async (bench) => {
    await installPeers();
    const sink = await startWebhookSink();
    bench.defer(sink.end);
    const hanging = new URL('/hangs', sink.urls[1]).href;
    const doorplate = await startDoorplate(bench, sink, hanging);
    const peers = [];
    for (const { library, atLeast } of LIBRARIES)
      peers.push({
        library,
        atLeast,
        side: await startQueue(bench, sink, library, hanging),
        measured: [] as Measured[],
      });
    const ours: Measured[] = [];
    // The connections are open.
    for (const side of [doorplate, ...peers.map((peer) => peer.side)]) await side.measure();
    for (let round = 0; round < bench.effort.rounds; round += 1) {
      ours.push(await doorplate.measure());
      for (const { side, measured } of peers) measured.push(await side.measure());
    }
    const wait = percentile(await doorplate.besideHanging(), 0.95);
    const lines: Line[] = [];
    for (const { library, atLeast, side, measured } of peers) {
      const theirWait = percentile(await side.besideHanging(), 0.95);
      lines.push(...toLines(library, atLeast, ours, measured), hangingLine(library, wait, theirWait));
    }
    return lines;
  },
};

const startDoorplate = async (bench: Bench, sink: WebhookSink, hanging: string): Promise<Side> => {
  const product: Product = await startDelivering(
    bench,
    sink,
    { WEBHOOK_STARTS_PER_SECOND: '100000' },
    PARTNERS,
  );
  const last = product.keys.at(-1) ?? '';
  const others = { ...product, keys: product.keys.slice(0, -1) };
  const sites = await subscribe(others, sink);
  const tracker = await createTracker({ ...product, keys: [last] });
  await createEndpoint(product, last, hanging, tracker);
  await createEndpoint(product, last, sink.urls[0] ?? '', tracker);
  return {
    measure: async () => {
      // This process writes the sessions, which a queue's process does itself.
      const before = process.cpuUsage();
      const { perSecond, cpuMicros, postgresMicros } = await product.beside((runtime) =>
        measureDeliveries(bench, runtime, others, sites, sink),
      );
      const { user, system } = process.cpuUsage(before);
      return { perSecond, cpuMicros: cpuMicros + postgresMicros + (user + system) / deliveriesOf(bench) };
    },
    besideHanging: () =>
      captureToReceiver(bench, { product, sink, tracker, rate: RATE, seconds: hangingSeconds(bench) }),
  };
};

const startQueue = async (
  bench: Bench,
  sink: WebhookSink,
  library: QueuedDeliverer['library'],
  hanging: string,
): Promise<Side> => {
  const { urls, authority } = sink;
  const folder = makeTestFolder();
  const child = startChild('peers/queue-deliveries.ts', { library, folder, urls, hanging, authority });
  bench.defer(async () => {
    await child.end();
    await removeDataFolder(folder);
  });
  const { pid } = await child.next<{ pid: number }>(START_MS);
  const cpu = (): number => cpuOf(child.pid) + cpuOfFamily(pid);
  return {
    measure: async () => {
      const deliveries = deliveriesOf(bench);
      const expected = (await sink.received()) + deliveries;
      const before = cpu();
      const startedAt = performance.now();
      child.say({ sessions: deliveries / OF_A_PARTNER });
      const { at } = await sink.reached(expected);
      const seconds = (at - startedAt) / 1_000;
      child.say({});
      await child.next<object>(DELIVERED_MS);
      return { perSecond: deliveries / seconds, cpuMicros: ((cpu() - before) * 1e6) / deliveries };
    },
    besideHanging: async () => {
      await sink.note();
      const warm = RATE * bench.effort.warmUpSeconds;
      child.say({ rate: RATE, total: warm + RATE * hangingSeconds(bench) });
      const { acknowledged } = await child.next<{ acknowledged: [number, number][] }>(DELIVERED_MS);
      return waitsOf(sink, new Map(acknowledged), warm);
    },
  };
};

const deliveriesOf = ({ effort }: Bench): number =>
  Math.round(SESSIONS_A_SECOND * effort.seconds) * OF_A_PARTNER;

/** So long that an endpoint which hangs for ten seconds has taken what it can. */
const hangingSeconds = ({ effort }: Bench): number => effort.seconds + 2;

const CONFIGURED = {
  'pg-boss': {
    rate: '8 workers that fetch 40 jobs at once, results job by job, bursts while batches are full, NOTIFY, polls of 0.5 s, 20 connections; a limit by endpoint would halve its rate',
    isolated:
      '64 workers that fetch one job at a time, at most 8 jobs of an endpoint at once (groupConcurrency: the limit that it keeps in memory let events wait for 90 s on a busy machine)',
  },
  'graphile-worker': {
    rate: '640 jobs at once, a local queue of 500, completions batched, NOTIFY, polls of 0.5 s, 20 connections',
    isolated:
      '640 jobs at once, of which the endpoint that hangs fills 500; a second one would fill the rest',
  },
};

const toLines = (
  library: QueuedDeliverer['library'],
  atLeast: number,
  ours: readonly Measured[],
  theirs: readonly Measured[],
): Line[] => {
  const compare = (key: keyof Measured, of: string, unit: string) =>
    compared(
      { of, values: ours.map((one) => one[key]) },
      { of: versionOf(library), values: theirs.map((one) => one[key]) },
      unit,
    );
  return [
    {
      row: `deliveries to ${library}`,
      ...compare('perSecond', 'sessions to acknowledged deliveries, 20 HTTPS endpoints', '/s'),
      target: { atLeast },
      notes: [
        `${library}: ${CONFIGURED[library].rate}`,
        'The queue gets the delivery as its job, its body included, five in one statement; it keeps no session and no history of attempts, decides no subscription, vets no address, and has no limit or breaker for an endpoint',
      ],
    },
    {
      row: `CPU of a delivery to ${library}`,
      ...compare('cpuMicros', 'CPU a delivery, PostgreSQL and a fifth of its session included', ' µs'),
      target: null,
      notes: [],
    },
  ];
};

const hangingLine = (library: QueuedDeliverer['library'], wait: number, theirWait: number): Line => ({
  row: `p95 beside an endpoint that hangs, to ${library}`,
  ratio: wait / theirWait,
  target: null,
  a: {
    of: `p95 from acknowledgement to receiver, ${RATE} events a second to both`,
    value: wait,
    unit: ' ms',
  },
  b: { of: versionOf(library), value: theirWait, unit: ' ms' },
  notes: [`${library}: ${CONFIGURED[library].isolated}. Attempts end after ten seconds on both sides`],
});
