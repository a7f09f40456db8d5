import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Bench, Line, Row } from '../support/bench.ts';
import { type Loaded, load } from '../support/load.ts';
import type { LoadPlan, Lookups } from '../support/load-plan.ts';
import { type Product, startProduct } from '../support/product.ts';
import { type Raw, startRawAppends } from '../support/raw-appends.ts';
import { alternate, median, medianRatio } from '../support/statistics.ts';

const CALLERS = 32;
const PARTNERS = 4;
/** More than any run needs. */
const ADDRESSES = 1_000_000;

/**
 * `POST /v1/lookup` of new addresses, by 32 callers of four partners: reservation, submission and count are three
 * durable steps that wait for each other. Against appends of single events to the same kind of store, by 32 callers
 * in a separate process. Each of the two starts when the other's remaining work is done. Once with a vendor that does
 * not answer during the measurement, because the shared intake admits fifteen attempts a second anyway; and, for
 * information, with the same process enriching all that came before.
 */
export const submissions: Row = {
  name: 'submissions',
  run: async (bench) => {
    const slow = await slowVendor(bench);
    const lines = [
      await measureSeparately(bench, slow, 'new submission'),
      {
        ...(await measure(bench, await bench.product(), {}, 'new submission, enriched alongside')),
        target: null,
      },
    ];
    if (bench.eventStoreUrl !== undefined) {
      const more = { EVENTSTORE_URL: bench.eventStoreUrl };
      lines.push(
        await measureSeparately(bench, { ...slow, ...more }, 'new submission, on EventStoreDB', more),
      );
    }
    return lines;
  },
};

/** A vendor that takes requests and answers none of them. */
export const slowVendor = async (bench: Bench): Promise<Readonly<Record<string, string>>> => {
  const vendor = createServer(() => {}).listen(0, '127.0.0.1');
  await once(vendor, 'listening');
  bench.defer(async () => {
    vendor.closeAllConnections();
    vendor.close();
  });
  return {
    ENRICHMENT_PROVIDERS: 'http',
    ENRICHMENT_HTTP_URL: `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/{ip}`,
    ENRICHMENT_HTTP_TIMEOUT_MS: '600000',
  };
};

/** On a separate service. */
const measureSeparately = async (
  bench: Bench,
  env: Readonly<Record<string, string>>,
  row: string,
  store: Readonly<Record<string, string>> = {},
): Promise<Line> => {
  const product = await startProduct(PARTNERS, env);
  bench.defer(product.end);
  try {
    return await measure(bench, { ...product, settled: product.followed }, store, row);
  } finally {
    await product.end();
  }
};

const measure = async (
  bench: Bench,
  product: Product,
  more: Readonly<Record<string, string>>,
  row: string,
): Promise<Line> => {
  const { rounds, seconds } = bench.effort;
  const raw = await startRawAppends(CALLERS, more);
  try {
    const { a, b } = await alternate(
      rounds,
      async () => {
        const loaded = await load(newPlan(bench, product), product.meters);
        await product.settled();
        return loaded;
      },
      () => raw.measure(seconds),
    );
    const line = toLine(row, a, b);
    if (product === (await bench.product())) bench.maxima.set('submissions', line.a.value);
    return line;
  } finally {
    await raw.end();
  }
};

/** The load of this row, for rows that use it with other parameters. */
export const newPlan = (
  { effort, freshAddresses }: Pick<Bench, 'effort' | 'freshAddresses'>,
  { port, keys }: Product,
  more: Partial<LoadPlan<Lookups>> = {},
): LoadPlan<Lookups> => ({
  port,
  requests: { of: 'lookups', method: 'POST', keys, address: { first: freshAddresses(ADDRESSES) } },
  connections: CALLERS,
  warmUpSeconds: effort.warmUpSeconds,
  seconds: effort.seconds,
  expect: 202,
  ...more,
});

const toLine = (row: string, a: readonly Loaded[], b: readonly Raw[]): Line => {
  const rates = (some: readonly { perSecond: number }[]) => some.map((one) => one.perSecond);
  const middle = (values: readonly number[], digits: number) => median(values).toFixed(digits);
  const serverMicros = a.map((one) => one.cpuMicros.server ?? 0);
  const postgresMicros = a.map((one) => one.cpuMicros.PostgreSQL ?? 0);
  return {
    row,
    ratio: medianRatio(rates(a), rates(b)),
    target: { atLeast: 0.3 },
    a: { of: `POST /v1/lookup, new, ${CALLERS} callers`, value: median(rates(a)), unit: '/s' },
    b: { of: `single appends, ${CALLERS} callers`, value: median(rates(b)), unit: '/s' },
    notes: [
      `CPU a submission, with what the service does meanwhile: server ${middle(serverMicros, 0)} µs and PostgreSQL ${middle(postgresMicros, 0)} µs`,
      `CPU an append: process ${middle(
        b.map(({ cpuMicros }) => cpuMicros.process),
        0,
      )} µs and PostgreSQL ${middle(
        b.map(({ cpuMicros }) => cpuMicros.PostgreSQL),
        0,
      )} µs`,
      `a submission at full load: p50 ${middle(
        a.map((one) => one.p50),
        1,
      )} ms, p99 ${middle(
        a.map((one) => one.p99),
        1,
      )} ms`,
    ],
  };
};
