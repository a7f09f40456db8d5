import { cpuOf } from '../../cli/installation/process-stats.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import { type Child, startChild } from '../support/child.ts';
import { generatorNote, type Loaded, load } from '../support/load.ts';
import type { Captures, LoadPlan } from '../support/load-plan.ts';
import { type Product, startProduct } from '../support/product.ts';
import { type Raw, type RawAppends, startRawAppends } from '../support/raw-appends.ts';
import { PAGE } from '../support/requests.ts';
import { alternate, median, medianRatio } from '../support/statistics.ts';
import { createTracker } from '../support/tracking.ts';

const CONNECTIONS = 64;
const START_MS = 10_000;
/** More than any run needs. */
const ADDRESSES = 1_000_000;
const PATH = '/tracking/collect';
/** The product's response to a capture. */
const CORS = { 'access-control-allow-origin': PAGE, vary: 'origin' };

/**
 * `POST /tracking/collect` to its 204, each a new tab from another address and so a new session: the session and the
 * count of the capture are durable by then. At 64 connections, against appends of single events to the same kind of
 * store by 64 callers in a separate process; and, for information, against a Fastify route in a separate process that
 * gets the same requests and answers 204. Each round waits until the read models have applied the one before.
 */
export const captures: Row = {
  name: 'captures',
  run: async (bench) => {
    const lines = await measure(bench, await bench.product(), {}, 'capture');
    if (bench.eventStoreUrl === undefined) return lines;
    const store = { EVENTSTORE_URL: bench.eventStoreUrl };
    const product = await startProduct(1, store);
    bench.defer(product.end);
    try {
      return [...lines, ...(await measure(bench, product, store, 'capture, on EventStoreDB'))];
    } finally {
      await product.end();
    }
  },
};

const measure = async (
  bench: Bench,
  product: Product,
  store: Readonly<Record<string, string>>,
  row: string,
): Promise<readonly Line[]> => {
  const tracker = await createTracker(product);
  const answer = { method: 'POST', path: PATH, status: 204, body: '', headers: CORS };
  const bare = startChild('bare-route.ts', answer);
  const raw = await startRawAppends(CONNECTIONS, store);
  try {
    const { port } = await bare.next<{ port: number }>(START_MS);
    return await compare(bench, product, tracker, row, { raw, bare, port });
  } finally {
    await raw.end();
    await bare.end();
  }
};

interface Against {
  readonly raw: RawAppends;
  readonly bare: Child;
  readonly port: number;
}

const compare = async (
  bench: Bench,
  product: Product,
  tracker: string,
  row: string,
  { raw, bare, port }: Against,
): Promise<readonly Line[]> => {
  const { rounds, seconds } = bench.effort;
  const { a, b } = await alternate(
    rounds,
    async () => {
      const loaded = await load(capturePlan(bench, product, tracker), product.meters);
      await product.followed();
      return loaded;
    },
    async () => ({
      raw: await raw.measure(seconds),
      bare: await load({ ...capturePlan(bench, product, tracker), port }, { server: () => cpuOf(bare.pid) }),
    }),
  );
  return toLines(
    row,
    a,
    b.map((one) => one.raw),
    b.map((one) => one.bare),
  );
};

const capturePlan = (
  { effort, freshAddresses }: Bench,
  { port }: Product,
  tracker: string,
): LoadPlan<Captures> => ({
  port,
  requests: { of: 'captures', tracker, first: freshAddresses(ADDRESSES) },
  connections: CONNECTIONS,
  warmUpSeconds: effort.warmUpSeconds,
  seconds: effort.seconds,
  expect: 204,
});

const toLines = (
  row: string,
  a: readonly Loaded[],
  raw: readonly Raw[],
  bare: readonly Loaded[],
): readonly Line[] => {
  const rates = (some: readonly { perSecond: number }[]) => some.map((one) => one.perSecond);
  const middle = (values: readonly number[], digits = 0) => median(values).toFixed(digits);
  const micros = (some: readonly Loaded[], meter: string) =>
    middle(some.map((one) => one.cpuMicros[meter] ?? 0));
  const captured = { of: `POST ${PATH}, ${CONNECTIONS} connections`, value: median(rates(a)), unit: '/s' };
  return [
    {
      row,
      ratio: medianRatio(rates(a), rates(raw)),
      target: { atLeast: 0.5 },
      a: captured,
      b: { of: `single appends, ${CONNECTIONS} callers`, value: median(rates(raw)), unit: '/s' },
      notes: [
        `CPU a capture, with its read models: server ${micros(a, 'server')} µs and PostgreSQL ${micros(a, 'PostgreSQL')} µs`,
        `CPU an append: process ${middle(raw.map(({ cpuMicros }) => cpuMicros.process))} µs and PostgreSQL ${middle(raw.map(({ cpuMicros }) => cpuMicros.PostgreSQL))} µs`,
        `a capture at full load: p50 ${middle(
          a.map((one) => one.p50),
          1,
        )} ms, p99 ${middle(
          a.map((one) => one.p99),
          1,
        )} ms`,
      ],
    },
    {
      row: `${row}, to a bare route`,
      ratio: medianRatio(rates(a), rates(bare)),
      target: { atLeast: 0.12 },
      a: captured,
      b: { of: 'bare Fastify route, 204', value: median(rates(bare)), unit: '/s' },
      notes: [`CPU a request of the bare route: ${micros(bare, 'server')} µs`, generatorNote(a, bare)],
    },
  ];
};
