import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { cpuOf, cpuOfFamily } from '../../cli/installation/process-stats.ts';
import { makeTestFolder } from '../../test/support/temporary-folder.ts';
import { startWebhookSink } from '../support/bare-deliveries.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import { startChild } from '../support/child.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { type Loaded, load, type Meters } from '../support/load.ts';
import type { LoadPlan } from '../support/load-plan.ts';
import { COUNTING_STATEMENTS, type DatabaseWork, openDatabaseWork } from '../support/statements.ts';
import { INSERT, type Kind, prepareKinds } from '../support/unit-kinds.ts';
import { deliveringEnv } from '../support/webhooks.ts';

const RATES = [10, 100, 1_000] as const;
const CONNECTIONS = 20;
const WARM_UP_SECONDS = 2;
const START_MS = 60_000;
const REST_SECONDS = 20;
/** Share of a core. */
const REST = 0.005;
/** The number of requests of each kind before the measurement: uncompiled code costs several times more. */
const WARM_UP = { rate: 300, seconds: 8 } as const;
/**
 * The rate of a kind that has a target; it is measured this many times, each beside the reference, for their median.
 */
const AIMED_RATE = 100;
const AIMED_ROUNDS = 3;
const AIMS: Readonly<Record<string, number>> = { capture: 1.2, reveal: 1.6 };

interface Cost {
  /** CPU of server and store, microseconds an operation. */
  readonly micros: number;
  readonly statements: number;
  readonly walBytes: number;
  readonly logBytes: number;
  readonly diskBytes: number;
  readonly connections: number;
}

/**
 * The cost of one operation of each kind at several rates: CPU of server and PostgreSQL, including read models and
 * all later work, as a multiple of a Fastify route that makes one durable insert, at the same rate in the same run.
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
      const fresh = await atRest('at rest, before any load', product, work.read);
      const kinds = await prepareKinds(bench, product, sink);
      const ofProduct = async (kind: Kind, rate: number, seconds?: number): Promise<Cost> => {
        const cost = await measure(bench, product, work.read, kind, rate, seconds);
        await product.followed();
        return cost;
      };
      const ofReference = (rate: number, seconds?: number): Promise<Cost> =>
        measure(bench, reference, reference.work.read, INSERT, rate, seconds);
      await ofReference(WARM_UP.rate, WARM_UP.seconds);
      for (const kind of kinds)
        await ofProduct(kind, Math.min(kind.most ?? WARM_UP.rate, WARM_UP.rate), WARM_UP.seconds);
      const lines: Line[] = [];
      for (const rate of RATES) {
        const measured = kinds
          .filter(({ most = rate }) => rate <= most)
          .map((kind) => ({ kind, pairs: [] as Pair[] }));
        for (let round = 0; round < (rate === AIMED_RATE ? AIMED_ROUNDS : 1); round += 1) {
          const against = await ofReference(rate);
          for (const { kind, pairs } of measured) pairs.push({ cost: await ofProduct(kind, rate), against });
        }
        lines.push(...measured.map(({ kind, pairs }) => toLine(kind.name, rate, middle(pairs))));
      }
      // Trackers, endpoints and sessions are there now, and what the process keeps of the load.
      return [...lines, fresh, await atRest('at rest, after the load', product, work.read)];
    } finally {
      await work.close();
      await reference.end();
      await product.end();
      await sink.end();
    }
  },
};

interface Pair {
  readonly cost: Cost;
  readonly against: Cost;
}

const ratioOf = ({ cost, against }: Pair): number => cost.micros / against.micros;

const middle = (pairs: readonly Pair[]): Pair =>
  pairs.toSorted((a, b) => ratioOf(a) - ratioOf(b))[Math.floor(pairs.length / 2)] as Pair;

const startReference = async () => {
  const folder = makeTestFolder();
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
  seconds = Math.max(effort.seconds * 2, 200 / rate),
): Promise<Cost> => {
  const plan: LoadPlan = {
    port: ownPort,
    requests: await requests(Math.ceil(rate * (WARM_UP_SECONDS + seconds))),
    connections: CONNECTIONS,
    rate,
    warmUpSeconds: WARM_UP_SECONDS,
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
    diskBytes: (after.diskBytes - before.diskBytes) / loaded.sent,
    connections: after.connections,
  };
};

const toLine = (name: string, rate: number, { cost, against }: Pair): Line => ({
  row: `unit cost of a ${name} at ${rate}/s`,
  ratio: ratioOf({ cost, against }),
  target: rate === AIMED_RATE && AIMS[name] !== undefined ? { atMost: AIMS[name] } : null,
  a: { of: 'CPU of server and store', value: cost.micros, unit: ' µs' },
  b: { of: 'a route with one durable insert', value: against.micros, unit: ' µs' },
  notes: [
    `${cost.statements.toFixed(2)} statements, ${Math.round(cost.walBytes)} bytes of WAL, ${Math.round(cost.diskBytes)} more on disk (${Math.round(cost.logBytes)} of the log) each; ${cost.connections} connections`,
  ],
});

const atRest = async (row: string, product: Cluster, read: () => Promise<DatabaseWork>): Promise<Line> => {
  await product.settled();
  const cpu = (): number => Object.values(product.meters).reduce((sum, meter) => sum + meter(), 0);
  const [before, cpuBefore, began] = [await read(), cpu(), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, REST_SECONDS * 1_000));
  const [after, cpuAfter] = [await read(), cpu()];
  const seconds = (performance.now() - began) / 1_000;
  const share = (cpuAfter - cpuBefore) / seconds;
  return {
    row,
    ratio: share / REST,
    target: { atMost: 1 },
    a: { of: 'CPU of server and store, share of a core', value: share * 100, unit: ' %' },
    b: { of: 'aim', value: REST * 100, unit: ' %' },
    notes: [
      `${((after.statements - before.statements - 1) / seconds).toFixed(2)} statements a second; ${after.connections} connections`,
    ],
  };
};
