import { makeDataFolder, removeDataFolder } from '../../test/support/data-folder.ts';
import { reap } from '../../test/support/reaped.ts';
import { startWebhookSink, type WebhookSink } from '../support/bare-deliveries.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import { startChild } from '../support/child.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { type Loaded, load, type Meters } from '../support/load.ts';
import type { LoadPlan } from '../support/load-plan.ts';
import { cpuOf, cpuOfFamily } from '../support/proc.ts';
import { COUNTING_STATEMENTS, type DatabaseWork, openDatabaseWork } from '../support/statements.ts';
import { capture, createTracker, readFeed } from '../support/tracking.ts';
import { createEndpoint, deliveringEnv } from '../support/webhooks.ts';
import { SAVED_ADDRESS, savedAnswer } from './saved-lookups.ts';

const RATES = [10, 100, 1_000] as const;
const CONNECTIONS = 20;
const START_MS = 60_000;
const REST_SECONDS = 20;
const ADDRESSES = 1_000_000;
/** As many sessions as one visitor may begin in a second. */
const SESSIONS = 10;
/** At this rate of a kind there is an aim. */
const AIMED_RATE = 100;
const AIMS: Readonly<Record<string, number>> = { capture: 1.8, reveal: 2.5 };

type Requests = LoadPlan['requests'];

/** What is done, so many a second. */
interface Kind {
  readonly name: string;
  readonly requests: () => Requests;
  readonly expect: number;
  /** Where it is sent. Default: the API. */
  readonly port?: number;
  /** The highest rate it is asked for. */
  readonly most?: number;
}

interface Cost {
  /** CPU of server and store, microseconds an operation. */
  readonly micros: number;
  readonly statements: number;
  readonly walBytes: number;
  readonly logBytes: number;
  readonly connections: number;
}

/**
 * What one operation of each kind costs, at several rates: CPU of server and PostgreSQL, read models and all that follows
 * by itself included, as a multiple of a Fastify route that makes one durable insert, at the same rate in the same run.
 */
export const unitCosts: Row = {
  name: 'unit-costs',
  run: async (bench) => {
    const sink = await startWebhookSink();
    bench.defer(sink.end);
    const product = await startCluster('all', 2, await deliveringEnv(bench, sink), COUNTING_STATEMENTS);
    bench.defer(product.end);
    const reference = await startReference();
    bench.defer(reference.end);
    const work = await openDatabaseWork(product.url);
    try {
      const rest = await atRest(product, work.read);
      const kinds = await prepare(bench, product, sink);
      const lines: Line[] = [];
      for (const rate of RATES) {
        const against = await measure(bench, reference, reference.work.read, INSERT, rate);
        for (const kind of kinds) {
          if (rate > (kind.most ?? rate)) continue;
          lines.push(toLine(kind.name, rate, await measure(bench, product, work.read, kind, rate), against));
          await product.followed();
        }
      }
      return [...lines, rest];
    } finally {
      await work.close();
      await reference.end();
      await product.end();
      await sink.end();
    }
  },
};

const INSERT: Kind = { name: 'insert', requests: () => ({ of: 'inserts' }), expect: 204 };

const prepare = async (bench: Bench, product: Cluster, sink: WebhookSink): Promise<readonly Kind[]> => {
  await savedAnswer(product);
  const { keys } = product;
  const [key = '', ofDeliveries = ''] = keys;
  const tracker = await createTracker(product);
  const delivered = await createTracker({ ...product, keys: [ofDeliveries] });
  await createEndpoint(product, ofDeliveries, sink.urls[0] ?? '', delivered);
  for (let n = 0; n < SESSIONS; n += 1) await capture(product, tracker, SAVED_ADDRESS);
  await product.followed();
  const sessions = (await readFeed(product, tracker)).sessions.map(({ session_id }) => session_id);
  const addresses = () => bench.freshAddresses(ADDRESSES);
  return [
    {
      name: 'saved lookup',
      requests: () => ({ of: 'lookups', method: 'GET', keys: [key], address: { same: SAVED_ADDRESS } }),
      expect: 200,
    },
    {
      name: 'submission, enriched',
      requests: () => ({ of: 'lookups', method: 'POST', keys: [key], address: { first: addresses() } }),
      expect: 202,
      most: 100,
    },
    { name: 'capture', requests: () => ({ of: 'captures', tracker, first: addresses() }), expect: 204 },
    { name: 'reveal', requests: () => ({ of: 'reveals', key, sessions }), expect: 200, most: 100 },
    {
      name: 'capture, delivered to one endpoint',
      requests: () => ({ of: 'captures', tracker: delivered, first: addresses() }),
      expect: 204,
      most: 100,
    },
    {
      name: 'clue',
      requests: () => ({ of: 'clues', first: addresses() }),
      expect: 202,
      port: Number(product.service.env.OPS_PORT),
      most: 100,
    },
    {
      name: 'feed page of 10',
      requests: () => ({ of: 'pages', key, paths: [`/v1/sessions?tracker_id=${tracker}&limit=10`] }),
      expect: 200,
    },
  ];
};

const startReference = async () => {
  const folder = makeDataFolder();
  reap({ folder });
  const child = startChild('durable-route.ts', { folder });
  const { port, pid, url } = await child.next<{ port: number; pid: number; url: string }>(START_MS);
  const work = await openDatabaseWork(url);
  let ending: Promise<void> | null = null;
  const end = async (): Promise<void> => {
    await work.close();
    await child.end();
    await removeDataFolder(folder);
  };
  const meters: Meters = { server: () => cpuOf(child.pid), PostgreSQL: () => cpuOfFamily(pid) };
  return {
    port,
    meters,
    work,
    end: () => {
      ending ??= end();
      return ending;
    },
  };
};

const measure = async (
  { effort }: Bench,
  { port, meters }: { readonly port: number; readonly meters: Meters },
  read: () => Promise<DatabaseWork>,
  { requests, expect, port: ownPort = port }: Kind,
  rate: number,
): Promise<Cost> => {
  const seconds = Math.max(effort.seconds * 2, 200 / rate);
  const plan: LoadPlan = {
    port: ownPort,
    requests: requests(),
    connections: CONNECTIONS,
    rate,
    warmUpSeconds: 2,
    seconds,
    expect,
  };
  const before = await read();
  const loaded: Loaded = await load(plan, meters);
  const after = await read();
  return {
    micros: (loaded.cpuMicros.server ?? 0) + (loaded.cpuMicros.PostgreSQL ?? 0),
    statements: (after.statements - before.statements) / loaded.sent,
    walBytes: (after.walBytes - before.walBytes) / loaded.sent,
    logBytes: (after.logBytes - before.logBytes) / loaded.sent,
    connections: after.connections,
  };
};

const toLine = (name: string, rate: number, cost: Cost, against: Cost): Line => ({
  row: `unit cost of a ${name} at ${rate}/s`,
  ratio: cost.micros / against.micros,
  target: rate === AIMED_RATE && AIMS[name] !== undefined ? { atMost: AIMS[name] } : null,
  a: { of: 'CPU of server and store', value: cost.micros, unit: ' µs' },
  b: { of: 'a route with one durable insert', value: against.micros, unit: ' µs' },
  notes: [
    `${cost.statements.toFixed(2)} statements, ${Math.round(cost.walBytes)} bytes of WAL and ${Math.round(cost.logBytes)} of the log each; ${cost.connections} connections`,
  ],
});

const atRest = async (product: Cluster, read: () => Promise<DatabaseWork>): Promise<Line> => {
  await product.settled();
  const cpu = (): number => Object.values(product.meters).reduce((sum, meter) => sum + meter(), 0);
  const [before, cpuBefore, began] = [await read(), cpu(), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, REST_SECONDS * 1_000));
  const [after, cpuAfter] = [await read(), cpu()];
  const seconds = (performance.now() - began) / 1_000;
  const share = (cpuAfter - cpuBefore) / seconds;
  return {
    row: 'at rest',
    ratio: share / 0.01,
    target: { atMost: 1 },
    a: { of: 'CPU of server and store, share of a core', value: share * 100, unit: ' %' },
    b: { of: 'aim', value: 1, unit: ' %' },
    notes: [
      `${((after.statements - before.statements - 1) / seconds).toFixed(2)} statements a second; ${after.connections} connections`,
    ],
  };
};
