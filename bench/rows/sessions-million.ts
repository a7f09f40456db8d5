import { residentMemory } from '../../cli/installation/process-stats.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import { load } from '../support/load.ts';
import { type Product, startProduct } from '../support/product.ts';
import { fillSessions } from '../support/sessions.ts';
import { alternate, median, medianRatio } from '../support/statistics.ts';
import { createTracker } from '../support/tracking.ts';

const SMALL_SIZE = 10_000;
const RATE = 40;
const CONNECTIONS = 4;
const PAGE = 100;
const PAGES = 2_000;
const MOST_SECONDS = 5;
const LIMIT_MB = 300;

/** A service with this number of sessions, and pages from its whole feed. */
interface Filled {
  readonly product: Product;
  readonly paths: readonly string[];
}

/**
 * `GET /v1/sessions` with 100 sessions on the page, at a low constant rate, from the whole feed, with few and with
 * many sessions in the read model: the median wait, and the server's memory. A quarter of the sessions are the
 * caller's. Two services stand side by side, each with its own data. The sessions are written to the read model's
 * table directly, sealed as captures seal them.
 */
export const sessionsMillionRow: Row = {
  name: 'sessions-million',
  run: async (bench) => {
    const few = await filled(bench, SMALL_SIZE);
    const many = await filled(bench, bench.effort.saved);
    try {
      return await measure(bench, few, many);
    } finally {
      await few.product.end();
      await many.product.end();
    }
  },
};

const filled = async (bench: Bench, count: number): Promise<Filled> => {
  bench.say(`making ${count} sessions`);
  const product = await startProduct(1);
  bench.defer(product.end);
  const tracker = await createTracker(product);
  const paths = await product.beside(async (runtime) => {
    const { partner, positions } = await fillSessions(runtime, tracker, count);
    const { cursors } = runtime;
    const pathOf = async (_: unknown, n: number) => {
      // Far enough from the end that the page is full.
      const position = positions.first + BigInt(Math.floor((n / PAGES) * (positions.count - 4 * PAGE)));
      return `/v1/sessions?limit=${PAGE}&cursor=${await cursors.seal(position, `sessions ${partner} *`)}`;
    };
    return Promise.all(Array.from({ length: PAGES }, pathOf));
  });
  await assertFull(product, paths.at(-1) ?? '');
  return { product, paths: scattered(paths) };
};

/** @throws unless it is a full page of sessions whose labels could be decrypted */
const assertFull = async ({ service, keys: [key = ''] }: Product, path: string): Promise<void> => {
  const { body } = await service.call('GET', path, { key });
  const opened = (body.sessions ?? []).filter(
    ({ custom }: { custom: { n?: number } }) => custom.n !== undefined,
  );
  if (opened.length !== PAGE)
    throw new Error(
      `a page has ${opened.length} sessions with labels: ${JSON.stringify(body).slice(0, 200)}`,
    );
};

/** Neighbouring numbers give distant pages, so that no page is cached because of the one before. */
const scattered = (paths: readonly string[]): string[] =>
  paths.map((_, n) => paths[(n * 7_919) % paths.length] as string);

const measure = async ({ effort }: Bench, few: Filled, many: Filled): Promise<readonly Line[]> => {
  const { rounds, warmUpSeconds } = effort;
  const seconds = Math.min(effort.seconds, MOST_SECONDS);
  const p50 = async ({ product: { port, keys }, paths }: Filled): Promise<number> => {
    const result = await load({
      port,
      requests: { of: 'pages', key: keys[0] ?? '', paths },
      connections: CONNECTIONS,
      rate: RATE,
      warmUpSeconds,
      seconds,
      expect: 200,
    });
    return result.p50;
  };
  const { a, b } = await alternate(
    rounds,
    () => p50(many),
    () => p50(few),
  );
  const used = residentMemory(many.product.service.pid);
  const name = effort.saved.toLocaleString('en');
  return [
    {
      row: `feed page of ${PAGE} with ${name} sessions`,
      ratio: medianRatio(a, b),
      target: { atMost: 1.3 },
      a: { of: `p50 with ${name} sessions`, value: median(a), unit: ' ms' },
      b: { of: `p50 with ${SMALL_SIZE.toLocaleString('en')} sessions`, value: median(b), unit: ' ms' },
      notes: [`${RATE} pages a second, each from one of ${PAGES.toLocaleString('en')} cursors`],
    },
    {
      row: `memory with ${name} sessions`,
      ratio: used / LIMIT_MB,
      target: { atMost: 1 },
      a: { of: 'resident memory of the server', value: used, unit: ' MB' },
      b: { of: 'limit', value: LIMIT_MB, unit: ' MB' },
      notes: [],
    },
  ];
};
