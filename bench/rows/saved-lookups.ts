import { cpuOf } from '../../cli/installation/process-stats.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import { startChild } from '../support/child.ts';
import { generatorNote, type Loaded, load } from '../support/load.ts';
import type { LoadPlan, Lookups } from '../support/load-plan.ts';
import { type Product, startProduct } from '../support/product.ts';
import { alternate, median, medianRatio } from '../support/statistics.ts';

/** Enriched by `savedAnswer`. */
export const SAVED_ADDRESS = '20.20.20.20';
const CONNECTIONS = 64;
/** By connections, the least ratio. */
const AIMS = [
  [CONNECTIONS, 0.6],
  [200, 0.7],
] as const;
const START_MS = 10_000;
const POLL_MS = 50;

/** One key would meet its own rate. */
export const PARTNERS = 4;

/**
 * `GET /v1/lookup` of a fresh saved result, over one key, authenticated, limited and counted durably, against a
 * Fastify route in a separate process that sends the same bytes: answers a second.
 */
export const savedLookups: Row = {
  name: 'saved-lookups',
  run: async (bench) => {
    const product = await bench.product();
    const lines: Line[] = [];
    for (const [connections, atLeast] of AIMS)
      lines.push(
        await measure(bench, product, `saved lookup, ${connections} connections`, connections, atLeast),
      );
    bench.maxima.set('saved lookups', lines[0]?.a.value ?? 0);
    if (bench.eventStoreUrl !== undefined) {
      const other = await startProduct(PARTNERS, { EVENTSTORE_URL: bench.eventStoreUrl });
      bench.defer(other.end);
      lines.push(await measure(bench, other, 'saved lookup, counted in EventStoreDB', CONNECTIONS, 0.5));
      await other.end();
    }
    return lines;
  },
};

const measure = async (
  bench: Bench,
  product: Product,
  row: string,
  connections: number,
  atLeast: number,
): Promise<Line> => {
  const { rounds, warmUpSeconds, seconds } = bench.effort;
  const { body, headers } = await savedAnswer(product);
  const bare = startChild('bare-route.ts', { method: 'GET', path: '/v1/lookup', status: 200, body, headers });
  try {
    const { port } = await bare.next<{ port: number }>(START_MS);
    const plan = { ...savedPlan(product, { warmUpSeconds, seconds }), connections };
    const counted = await countedSoFar(product);
    const { a, b } = await alternate(
      rounds,
      () => load(plan, product.meters),
      () => load({ ...plan, port }, { server: () => cpuOf(bare.pid) }),
    );
    const sent = a.reduce((sum, one) => sum + one.sent, 0);
    const missing = counted + sent - (await countedSoFar(product));
    const line = toLine(row, a, b, atLeast);
    return {
      ...line,
      notes: [...line.notes, `${sent} answers, ${missing} of them missing in GET /v1/usage`],
    };
  } finally {
    await bare.end();
  }
};

/** The load of this row, for rows that use it with other parameters. */
export const savedPlan = (
  { port, keys }: Product,
  times: Pick<LoadPlan, 'warmUpSeconds' | 'seconds'>,
): LoadPlan<Lookups> => ({
  port,
  requests: { of: 'lookups', method: 'GET', keys, address: { same: SAVED_ADDRESS } },
  connections: CONNECTIONS,
  expect: 200,
  ...times,
});

/** Enriches the address and returns the response. */
export const savedAnswer = async ({ service, keys: [key = ''] }: Product) => {
  await service.call('POST', '/v1/lookup', { key, body: { ip: SAVED_ADDRESS } });
  for (const deadline = performance.now() + START_MS; performance.now() < deadline; ) {
    const response = await fetch(`${service.url}/v1/lookup?ip=${SAVED_ADDRESS}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const body = await response.text();
    const names = ['content-type', 'cache-control', 'x-request-id', 'ratelimit-policy', 'ratelimit'];
    const headers = Object.fromEntries(names.map((name) => [name, response.headers.get(name) ?? '']));
    if (response.status === 200) return { body, headers };
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error('the address was not enriched');
};

const countedSoFar = async ({ service, keys }: Product): Promise<number> => {
  const counts = keys.map(async (key) => {
    const { status, body } = await service.call('GET', '/v1/usage', { key });
    if (status !== 200) throw new Error(`GET /v1/usage: ${status}`);
    return body.totals.requests as number;
  });
  return (await Promise.all(counts)).reduce((sum, n) => sum + n, 0);
};

const toLine = (row: string, a: readonly Loaded[], b: readonly Loaded[], atLeast: number): Line => {
  const rates = (some: readonly Loaded[]) => some.map((one) => one.perSecond);
  const micros = (some: readonly Loaded[], meter: string) =>
    median(some.map((one) => one.cpuMicros[meter] ?? 0)).toFixed(1);
  return {
    row,
    ratio: medianRatio(rates(a), rates(b)),
    target: { atLeast },
    a: { of: 'GET /v1/lookup, saved', value: median(rates(a)), unit: '/s' },
    b: { of: 'bare Fastify route, same bytes', value: median(rates(b)), unit: '/s' },
    notes: [
      `CPU a request: server ${micros(a, 'server')} µs and PostgreSQL ${micros(a, 'PostgreSQL')} µs; bare ${micros(b, 'server')} µs`,
      generatorNote(a, b),
    ],
  };
};
